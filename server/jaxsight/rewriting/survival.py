"""Rewrite a program so that it survives its failures in a dry run.

Each statement of a function gets a handler that makes the names unknown which the statement binds,
a loop asks for each of its iterations, a `with` survives a context that cannot be entered, all
branches run where a condition is unknown (`branching.py`), and calls are announced. Outside of a
dry run, and inside of a function that JAX traces, rewritten code behaves like the original
(`tracer/dry_runs/runtime.py`).
"""

from __future__ import annotations

import ast
import itertools
import re
from ast import copy_location
from collections.abc import Iterator
from dataclasses import replace

from jaxsight.rewriting import nodes
from jaxsight.rewriting.branching import TEST, BranchPlace, Forking, is_movable, tested
from jaxsight.rewriting.nodes import ERROR, assign, name, own_nodes, runtime, thunk
from jaxsight.rewriting.rewriter import LOCALS, SEEN, Rewriter, is_class, is_reported
from jaxsight.text.names import bound_in_scope, parameters_of

_FAILED, _TURN = "__jaxsight_failed__", "__jaxsight_turn__"
_TRACED = re.compile(
    r"jit|map\b|grad|vjp|jvp|checkpoint|remat|scan|shard_map|custom_|property|contextmanager"
)
"""Decorators of functions that are not rewritten: JAX traces them, or they are not plain."""
_PLAIN_BASES = re.compile(r"Test|object$|ABC$|Trainer|Protocol$")
"""Base classes of classes whose methods are rewritten; those of modules are not."""
_NOT_CALLED = frozenset(
    {"super", "locals", "globals", "vars", "dir", "eval", "exec", "isinstance", "hasattr"}
)
"""Builtins that look at their caller, or whose calls need no announcement."""
_Loop = ast.For | ast.While

_numbers = itertools.count(1)
"""Of statements and comprehensions in this process; generators have 0."""


class SurvivalRewriter(Rewriter):
    """Rewrites a tree in place, so that its statements survive."""

    def __init__(self, *, expressions: bool = False) -> None:
        """`expressions`: also record values and calls, those of nested functions, too."""
        super().__init__(expressions=expressions)
        self.functions: set[str] = set()
        """The qualified names of all functions that were rewritten."""
        self._reads = True
        self._survives = True
        """Whether the current node is of a function or module that is rewritten to survive."""
        self._place = BranchPlace()
        self._own: frozenset[str] = frozenset()
        """The local names of the function around the current node."""

    def rewrite(self, tree: ast.Module) -> None:
        super().rewrite(tree)
        nodes.complete(tree)

    @property
    def _in_function(self) -> bool:
        return self._names[-1:] == (LOCALS,)

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if is_class(self._names):
            is_method = isinstance(node, ast.FunctionDef) and not node.name.startswith("__")
            with self.within(_survives=self._survives and is_method):
                return super().statement(node)
        if not (self._survives or self._place.tried):
            return super().statement(node)
        return [*self.branching(node)]

    def branching(self, node: ast.stmt) -> Iterator[ast.stmt]:
        """Yield what a statement becomes that may have branches, or leave one."""
        place = self._place
        match node:
            case ast.If():
                yield from self.forked(node)
            case ast.Return():
                with self.within(_survives=True):
                    self.visit(node)
                if place.may_return:
                    leaving = place.leaving("return", node.value or ast.Constant(None))
                    node.value = copy_location(leaving, node)
                yield self.handled(node, [node]) if self._survives else node
            case ast.Break() | ast.Continue():
                if place.in_branch:
                    leaving = place.leaving(type(node).__name__.lower())
                    yield copy_location(ast.Expr(leaving), node)
                yield node
            case ast.Raise():
                yield from self.plain([node])
                if place.in_branch and node.exc is not None:
                    node.exc = copy_location(place.leaving("raise", node.exc), node)
            case _ if self._survives:
                yield from self.surviving(node)
            case _:
                loop = next(_numbers) if isinstance(node, _Loop) else place.loop
                with self.within(_place=replace(place, loop=loop)):
                    yield from super().statement(node)

    def surviving(self, node: ast.stmt) -> Iterator[ast.stmt]:
        """Yield what another statement becomes that survives."""
        match node:
            case ast.FunctionDef():
                site = len(self.sites)
                self.visit(node)
                decorators = [_dry(d, "decorator", thunk(d)) for d in node.decorator_list]
                node.decorator_list[:] = decorators
                noted = self.noted(node, site)
                yield self.handled(node, [node])
                yield from noted
            case ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Pass():
                yield from self.plain([node])
            case ast.Expr(ast.Constant()) | ast.ImportFrom(module="__future__"):
                yield node
            case ast.Import() | ast.ImportFrom():
                importing = ast.With([ast.withitem(nodes.dry("importing"))], [node])
                imported = [copy_location(importing, node), _statement("imported", node)]
                yield self.handled(node, imported)
            case ast.For() | ast.While():
                yield from self.loop(node)
            case ast.With():
                yield self.context(node)
            case ast.Match():
                self.visit(node)
                node.subject = _dry(node.subject, "certain", node.subject)
                yield self.handled(node, [node])
            case ast.Assign(targets=[ast.Name(id=target)]) if target in _read_and_bound(node):
                self.visit(node)
                node.value = _dry(node, "updated", node.value, thunk(name(target)))
                yield self.handled(node, [node])
            case ast.Assign(targets=[ast.Tuple(elts=parts)]) if _is_unpacking(node, parts):
                _, *recordings = super().statement(node)
                node.value = _dry(node, "unpacked", node.value, len(parts))
                yield self.handled(node, [node])
                yield from recordings
            case _:
                visited, *recordings = super().statement(node)
                yield self.handled(node, [visited])
                yield from recordings

    def plain(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements that do not survive."""
        with self.within(_survives=False, _place=BranchPlace()):
            return self.block(statements)

    def handled(
        self, node: ast.stmt, body: list[ast.stmt], changed: set[str] | None = None
    ) -> ast.stmt:
        """Return statements with a handler, for the names that `node` binds or has `changed`."""
        after: list[ast.stmt] = [_statement("failed", node, name(ERROR))]
        stored, changed = _stored(node), _changed(node) if changed is None else changed
        kept = _read_and_bound(node) if isinstance(node, ast.Assign) else set()
        for each in sorted(stored):
            unknown = assign(runtime("unknown"), each)
            state = assign(nodes.dry("state", name(each)), each)
            after.append(nodes.unless_unbound(state, unknown) if each in kept else unknown)
        for each in sorted(changed - stored):
            value = nodes.dry("changed", name(each))
            local = each in self._own or not self._in_function
            after.append(nodes.unless_unbound(assign(value, each) if local else ast.Expr(value)))
        if self._in_function:
            after.append(assign(ast.Constant(value=True), _FAILED))
        if isinstance(node, ast.Return):
            after.append(self._place.returning(runtime("unknown")))
        return nodes.tried(node, body, after)

    def visit_FunctionDef(self, node: nodes.Function) -> ast.AST:
        if not self._survives:
            with self.within(_place=BranchPlace()):
                return super().visit_FunctionDef(node)
        qualified = ".".join((*self._names, node.name))
        self.functions.add(qualified)
        survives = not any(map(_is_traced, node.decorator_list)) and not any(
            isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(node.body)
        )
        place = BranchPlace.within(node) if survives else BranchPlace()
        with self.within(_survives=survives, _own=_locals(node), _place=place):
            super().visit_FunctionDef(node)
        if survives:
            not_failed = assign(ast.Constant(value=False), _FAILED)
            nodes.begin(
                node, [_statement("began", node, qualified), copy_location(not_failed, node)]
            )
            failed = ast.If(name(_FAILED), [ast.Return(runtime("unknown"))], [])
            end = [failed, *([place.returning(ast.Constant(None))] if place.may_return else ())]
            node.body += [copy_location(each, node) for each in end]
        return node

    def noted(self, node: ast.FunctionDef, site: int) -> list[ast.stmt]:
        """Have a nested function noted that reports its calls, as the first of its sites.

        Returns:
            What notes its decorated form.
        """
        is_visited = len(self.sites) > site
        if not (is_visited and self._reports and self._in_function and is_reported(node)):
            return []
        number = self.first + site
        node.decorator_list.append(_dry(node, "defined", number))
        return [_statement("decorated", node, number, name(node.name))]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Rewrite the methods of a class, unless it may be one of modules."""
        plain = all(_PLAIN_BASES.search(ast.unparse(base)) for base in node.bases)
        survives = self._survives and plain and not node.decorator_list
        with self.within(_survives=survives, _place=BranchPlace()):
            return super().visit_ClassDef(node)

    def forked(self, node: ast.If) -> Iterator[ast.stmt]:
        """Yield a statement whose branches run one after another, each if it is to run."""
        stored, roots = _stored(node), _changed(node)
        names = stored | {n for n in roots if n in self._own or not self._in_function}
        forking = Forking(node, sorted(names), sorted(roots), self._place, next(_numbers))
        body: list[ast.stmt] = []
        # Before the statement is rewritten, from which the names are read.
        statements = [self.handled(node, body, roots)] if self._survives else body
        self.visit(node)
        body += forking.statements()
        yield from statements

    def visit_If(self, node: ast.If) -> ast.AST:
        with self.within(_survives=self._survives or self._place.tried > 0):
            node.test = self.visit(node.test)
        with self.within(_place=replace(self._place, in_branch=True)):
            node.body[:] = self.block(node.body)
            node.orelse[:] = self.block(node.orelse)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            with self.within(_survives=False):
                node.guard = self.visit(node.guard)
        node.body[:] = self.block(node.body)
        return node

    def loop(self, node: _Loop) -> Iterator[ast.stmt]:
        """Yield a loop that asks for each iteration, and what is done after it.

        A `while` loop becomes an endless `for` loop that its condition ends.
        """
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        changing = self._own if self._in_function else _stored(node) | _changed(node)
        number = next(_numbers)
        orelse, node.orelse = node.orelse, []
        with self.within(_place=replace(self._place, loop=number)):
            self.visit(node)
        with self.within(_depth=self._depth + 1):
            node.orelse = self.block(orelse)
        if isinstance(node, ast.While):
            goes_on = ast.UnaryOp(ast.Not(), nodes.dry("goes_on", name(TEST), number))
            ends = copy_location(ast.If(goes_on, [*node.orelse, ast.Break()], []), node)
            body = [tested(node.test, node), ends, *node.body]
            turn = ast.Name(_TURN, nodes.STORE)
            node = copy_location(ast.For(turn, nodes.dry("endless"), body, []), node)
        listed = sorted(names)
        template = _template(node.target)
        constants = nodes.constants(listed)
        node.iter = _dry(node, "turns", number, thunk(node.iter), template, constants)
        values = nodes.call("locals")
        note = _statement("turned", node, number, values, nodes.constants(listed))
        node.body = [ast.Try(node.body, [], [], [note])]
        yield self.handled(node, [node])
        settle = [
            nodes.unless_unbound(assign(nodes.dry("settled", each, name(each)), each))
            for each in listed
            if each in changing
        ]
        if settle:
            yield copy_location(ast.If(nodes.dry("was_cut", number), settle, []), node)

    def context(self, node: ast.With) -> ast.stmt:
        """Return a `with` that survives contexts that cannot be entered."""
        movable = [item for item in node.items if is_movable(item.context_expr)]
        self.visit(node)
        for item in movable:
            template = _template(item.optional_vars)
            item.context_expr = _dry(node, "context", thunk(item.context_expr), template)
        return self.handled(node, [node])

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        """Rewrite a `try`: its handlers get no error that a real run would not have."""
        place = self._place
        if not ((self._survives or place.tried) and node.handlers):
            return self.generic_visit(node)
        with self.within(_survives=False, _place=replace(place, tried=next(_numbers))):
            body, node.body = self.block(node.body), []
        self.generic_visit(node)
        node.body = [nodes.tried(node, body, [ast.Raise(nodes.dry("judged", name(ERROR)))])]
        return node

    visit_TryStar = visit_Try

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Announce a call."""
        function = node.func
        super().visit_Call(node)
        is_known = isinstance(function, ast.Name) and function.id in _NOT_CALLED
        if self._survives and not is_known:
            node.args.insert(0, node.func)
            node.func = copy_location(runtime("call"), node)
        return node

    def operation(self, node: ast.Compare | ast.BinOp | ast.IfExp | ast.BoolOp) -> ast.AST:
        """Have the runtime do an operation that may be with something unknown."""
        operands = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        repeats, is_lazy = any(map(_is_sequence, operands)), self._survives and is_movable(node)
        is_text = any(isinstance(left, ast.Constant | ast.JoinedStr) for left in operands[:1])
        self.generic_visit(node)
        match node:
            case _ if not self._survives:
                return node
            case ast.Compare(left=left, ops=[how], comparators=[right]):
                return _dry(node, "compared", type(how).__name__, left, right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if repeats:
                return _dry(node, "repeated", left, right)
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as how, right=right) if (
                not is_text
            ):
                return _dry(node, "divided", type(how).__name__, left, right)
            case ast.IfExp(test=test, body=body, orelse=orelse) if is_lazy:
                return _dry(node, "chosen", *map(thunk, (test, body, orelse)))
            case ast.BoolOp(op=how, values=values) if is_lazy:
                return _dry(node, "logical", isinstance(how, ast.Or), *map(thunk, values))
            case _:
                return node

    visit_Compare = visit_BinOp = visit_IfExp = visit_BoolOp = operation

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        is_lazy = self._survives and is_movable(node.test)
        self.generic_visit(node)
        if is_lazy:
            node.test = _dry(node.test, "holds", thunk(node.test))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        with self.within(_survives=False):
            return super().visit_Lambda(node)

    def comprehension(
        self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
    ) -> ast.AST:
        """Announce the items of a comprehension."""
        self.generic_visit(node)
        if not self._survives:
            return node
        number = 0 if isinstance(node, ast.GeneratorExp) else next(_numbers)
        for each in node.generators:
            each.iter = _dry(each.iter, "iterate", number, each.iter)
        return _dry(node, "listed", number, node) if number else node

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = comprehension


def _template(target: ast.expr | None) -> ast.expr:
    """Return the structure that a target unpacks, as nested tuples of `None`."""
    if isinstance(target, ast.Tuple | ast.List):
        return ast.Tuple([_template(part) for part in target.elts], nodes.LOAD)
    return ast.Constant(None)


def _locals(node: nodes.Function) -> frozenset[str]:
    """Return the names that a function binds itself."""
    inner = own_nodes(node.body)
    declared = (each.names for each in inner if isinstance(each, ast.Global | ast.Nonlocal))
    stored = (_stored(statement) for statement in node.body)
    return frozenset(parameters_of(node.args)).union(*stored).difference(*declared)


def _stored(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    return {n for n in bound_in_scope(statement) if n != "*" and not n.startswith("__jaxsight_")}


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of objects that a statement may change in place."""
    names: set[str] = set()
    for node in own_nodes([statement]):
        match node:
            case ast.Call(func=called) if isinstance(_plain(called), ast.Attribute):
                names.add(_root(called))
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names.add(_root(node))
            case _:
                pass
    return names - {nodes.DRY, ""}


def _plain(node: ast.expr) -> ast.expr:
    """Return an expression without the call that records it."""
    match node:
        case ast.Call(func=ast.Name(id=recorder), args=[_, value]) if recorder == SEEN:
            return _plain(value)
        case _:
            return node


def _root(node: ast.expr) -> str:
    """Return the name that an attribute or item is of; empty if there is none."""
    node = _plain(node)
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = _plain(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def _is_unpacking(node: ast.Assign, parts: list[ast.expr]) -> bool:
    """Return whether an assignment gives each of its targets an item of its value."""
    has_star = any(isinstance(part, ast.Starred) for part in parts)
    return not has_star and not isinstance(node.value, ast.Tuple | ast.List)


def _is_traced(decorator: ast.expr) -> bool:
    """Return whether a decorator is one of functions that are not rewritten, or is given one.

    What else it is given says nothing, as in `chex.variants(with_jit=True)`.
    """
    named = (
        (decorator.func, *decorator.args[:1]) if isinstance(decorator, ast.Call) else [decorator]
    )
    names = (each for each in named if isinstance(each, ast.Name | ast.Attribute))
    return any(_TRACED.search(ast.unparse(each)) for each in names)


def _read_and_bound(statement: ast.Assign) -> set[str]:
    """Return the names that an assignment binds to the result of a call that takes them."""
    value = _plain(statement.value)
    if not isinstance(value, ast.Call):
        return set()
    taken = {
        node.id
        for argument in (*value.args, *(k.value for k in value.keywords))
        for node in ast.walk(argument)
        if isinstance(node, ast.Name)
    }
    return taken & _stored(statement)


def _dry(at: ast.AST, method: str, *arguments: int | str | ast.expr) -> ast.expr:
    """Return a call of a method of the runtime in the place of a node."""
    return copy_location(nodes.dry(method, *arguments), at)


def _statement(method: str, at: ast.stmt, *arguments: int | str | ast.expr) -> ast.stmt:
    """Return a statement that calls a method of the runtime."""
    return copy_location(ast.Expr(nodes.dry(method, *arguments)), at)


def _is_sequence(node: ast.expr) -> bool:
    """Return whether an expression is a list, a tuple or a text."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.List | ast.Tuple | ast.ListComp | ast.JoinedStr)
