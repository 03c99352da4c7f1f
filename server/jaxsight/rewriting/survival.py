"""Rewrite a program so that it survives its failures in a dry run.

Each statement of a function gets a handler that makes the names unknown which the statement binds,
a loop asks for each of its iterations, a `with` survives a context that cannot be entered, and
calls are announced. Outside of a dry run, and inside of a function that JAX traces, rewritten code
behaves like the original (`tracer/dry_runs/runtime.py`).
"""

from __future__ import annotations

import ast
import itertools
import re
from ast import copy_location
from collections.abc import Iterator

from jaxsight.rewriting import nodes
from jaxsight.rewriting.nodes import LOAD, STORE, assign, name, own_nodes, thunk
from jaxsight.rewriting.rewriter import LOCALS, SEEN, Rewriter, entry_of, is_class, report
from jaxsight.text.names import bound_in_scope, parameters_of

DRY = "__jaxsight_dry__"
"""The builtin that rewritten code calls: a `DryRuntime`."""
_ERROR, _FAILED, _TURN = "__jaxsight_error__", "__jaxsight_failed__", "__jaxsight_turn__"
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
_UNMOVABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that cannot be evaluated in a function of their own."""

_numbers = itertools.count(1)
"""Of loops, comprehensions and nested functions in this process; generators have 0."""


class SurvivalRewriter(Rewriter):
    """Rewrites a tree in place, so that its statements survive."""

    def __init__(self, *, expressions: bool = False) -> None:
        """`expressions`: also record values and calls, those of nested functions, too."""
        super().__init__(expressions=expressions, entries=expressions)
        self.functions: set[str] = set()
        """The qualified names of all functions that were rewritten."""
        self._reads = True
        self._survives = True
        """Whether the current node is of a function or module that is rewritten to survive."""
        self._own: frozenset[str] = frozenset()
        """The local names of the function around the current node."""

    def rewrite(self, tree: ast.Module) -> None:
        super().rewrite(tree)
        ast.fix_missing_locations(tree)

    @property
    def _in_function(self) -> bool:
        return self._names[-1:] == (LOCALS,)

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if is_class(self._names):
            is_method = isinstance(node, ast.FunctionDef) and not node.name.startswith("__")
            with self.within(_survives=self._survives and is_method):
                return super().statement(node)
        return [*self.surviving(node)] if self._survives else super().statement(node)

    def surviving(self, node: ast.stmt) -> Iterator[ast.stmt]:
        """Yield the statements that a statement becomes."""
        match node:
            case ast.FunctionDef():
                self.visit(node)
                noted = self.noted(node)
                yield self.handled(node, [node])
                yield from noted
            case ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Pass():
                yield from self.plain([node])
            case ast.Break() | ast.Continue() | ast.Raise() | ast.Expr(ast.Constant()):
                yield from self.plain([node])
            case ast.ImportFrom(module="__future__"):
                yield node
            case ast.Import() | ast.ImportFrom():
                importing = ast.With([ast.withitem(_call("importing"))], [node])
                imported = [copy_location(importing, node), _statement("imported", node)]
                yield self.handled(node, imported)
            case ast.For() | ast.While():
                yield from self.loop(node)
            case ast.With():
                self.visit(node)
                for item in node.items:
                    if not any(isinstance(n, _UNMOVABLE) for n in ast.walk(item.context_expr)):
                        expression, template = (
                            thunk(item.context_expr),
                            _template(item.optional_vars),
                        )
                        context = _call("context", expression, template)
                        item.context_expr = copy_location(context, node)
                yield self.handled(node, [node])
            case ast.Assign(targets=[ast.Name(id=target)]) if target in _read_and_bound(node):
                self.visit(node)
                updated = _call("updated", node.value, thunk(name(target)))
                node.value = copy_location(updated, node)
                yield self.handled(node, [node])
            case _:
                visited, *recordings = super().statement(node)
                yield self.handled(node, [visited])
                yield from recordings

    def plain(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements that do not survive."""
        with self.within(_survives=False):
            return self.block(statements)

    def handled(self, node: ast.stmt, body: list[ast.stmt]) -> ast.stmt:
        """Return statements with a handler, for the names that `node` binds or changes."""
        after: list[ast.stmt] = [_statement("failed", node, name(_ERROR))]
        stored, changed = _stored(node), _changed(node)
        kept = _read_and_bound(node) if isinstance(node, ast.Assign) else set()
        for each in sorted(stored):
            unknown = assign(_runtime("unknown"), each)
            state = assign(_call("state", name(each)), each)
            after.append(_unless_unbound(state, unknown) if each in kept else unknown)
        for each in sorted(changed - stored):
            value = _call("changed", name(each))
            local = each in self._own or not self._in_function
            after.append(_unless_unbound(assign(value, each) if local else ast.Expr(value)))
        if self._in_function:
            after.append(assign(ast.Constant(value=True), _FAILED))
        if isinstance(node, ast.Return):
            after.append(ast.Return(_runtime("unknown")))
        return _tried(node, body, after)

    def visit_FunctionDef(self, node: nodes.Function) -> ast.AST:
        if not self._survives:
            return super().visit_FunctionDef(node)
        qualified = ".".join((*self._names, node.name))
        self.functions.add(qualified)
        survives = not any(
            _TRACED.search(ast.unparse(each)) for each in node.decorator_list
        ) and not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(node.body))
        with self.within(_survives=survives, _own=_locals(node)):
            super().visit_FunctionDef(node)
        if survives:
            began = _statement("began", node, qualified)
            nodes.begin(
                node, [began, copy_location(assign(ast.Constant(value=False), _FAILED), node)]
            )
            unknown = ast.Return(_runtime("unknown"))
            node.body.append(copy_location(ast.If(name(_FAILED), [unknown], []), node))
        return node

    def noted(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """Have a nested function noted, and its calls; return what notes its decorated form."""
        noted = self._entries and self._in_function
        entry = entry_of(node, self._names) if noted else None
        if entry is None:
            return []
        number = next(_numbers)
        nodes.begin(node, [report(_runtime("entered"), number, entry, node)])
        defined = _call("defined", number, entry.function, *entry.parameters)
        node.decorator_list.append(copy_location(defined, node))
        return [_statement("decorated", node, number, name(node.name))]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Rewrite the methods of a class, unless it may be one of modules."""
        plain = all(_PLAIN_BASES.search(ast.unparse(base)) for base in node.bases)
        with self.within(_survives=self._survives and plain and not node.decorator_list):
            return super().visit_ClassDef(node)

    def loop(self, node: ast.For | ast.While) -> Iterator[ast.stmt]:
        """Yield a loop that asks for each iteration, and what is done after it.

        A `while` loop becomes an endless `for` loop that its condition ends.
        """
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self.visit(node)
        if isinstance(node, ast.While):
            ends = ast.UnaryOp(ast.Not(), _call("goes_on", node.test))
            leave = copy_location(ast.If(ends, [*node.orelse, ast.Break()], []), node)
            body = [self.handled(leave, [leave]), *node.body]
            node = copy_location(ast.For(ast.Name(_TURN, STORE), _call("endless"), body, []), node)
        number = next(_numbers)
        listed = ast.Tuple([ast.Constant(each) for each in sorted(names)], LOAD)
        turns = _call("turns", number, thunk(node.iter), _template(node.target), listed)
        node.iter = copy_location(turns, node)
        note = _statement("turned", node, number, nodes.call("locals"), listed)
        node.body = [ast.Try(node.body, [], [], [note])]
        yield self.handled(node, [node])
        settle = [
            _unless_unbound(assign(_call("settled", each, name(each)), each))
            for each in sorted(names)
            if each in self._own or (not self._in_function and each in _stored(node))
        ]
        if settle:
            yield copy_location(ast.If(_call("was_cut", number), settle, []), node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        """Rewrite a `try`: its handlers get no error that a real run would not have."""
        if not (self._survives and node.handlers):
            return self.generic_visit(node)
        body, node.body = self.plain(node.body), []
        self.generic_visit(node)
        node.body = [_tried(node, body, [ast.Raise(_call("judged", name(_ERROR)))])]
        return node

    visit_TryStar = visit_Try

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Announce a call."""
        function = node.func
        super().visit_Call(node)
        is_known = isinstance(function, ast.Name) and function.id in _NOT_CALLED
        if self._survives and not is_known:
            node.args.insert(0, node.func)
            node.func = copy_location(_runtime("call"), node)
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
            each.iter = copy_location(_call("each", number, each.iter), each.iter)
        return copy_location(_call("listed", number, node), node) if number else node

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = comprehension


def _template(target: ast.expr | None) -> ast.expr:
    """Return the structure that a target unpacks, as nested tuples of `None`."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return ast.Tuple([_template(part) for part in parts], LOAD)
        case _:
            return ast.Constant(None)


def _locals(node: nodes.Function) -> frozenset[str]:
    """Return the names that a function binds itself."""
    inner = own_nodes(node.body)
    declared = (each.names for each in inner if isinstance(each, ast.Global | ast.Nonlocal))
    stored = (_stored(statement) for statement in node.body)
    return frozenset(parameters_of(node.args)).union(*stored).difference(*declared)


def _stored(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    return set(bound_in_scope(statement)) - {"*", _ERROR, _FAILED, _TURN}


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
    return names - {DRY, ""}


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


def _tried(at: ast.stmt, body: list[ast.stmt], after: list[ast.stmt]) -> ast.stmt:
    """Return statements with a handler for all errors."""
    handler = ast.ExceptHandler(name("BaseException"), _ERROR, after)
    return copy_location(ast.Try(body, [handler], [], []), at)


def _unless_unbound(statement: ast.stmt, otherwise: ast.stmt | None = None) -> ast.stmt:
    """Return a statement that does nothing if it reads a name that is not bound."""
    handler = ast.ExceptHandler(name("NameError"), None, [otherwise or ast.Pass()])
    return ast.Try([statement], [handler], [], [])


def _runtime(method: str) -> ast.expr:
    """Return an attribute of the runtime."""
    return ast.Attribute(name(DRY), method, LOAD)


def _call(method: str, *arguments: int | str | ast.expr) -> ast.Call:
    """Return a call of a method of the runtime."""
    return nodes.call(_runtime(method), *arguments)


def _statement(method: str, at: ast.stmt, *arguments: int | str | ast.expr) -> ast.stmt:
    """Return a statement that calls a method of the runtime."""
    return copy_location(ast.Expr(_call(method, *arguments)), at)
