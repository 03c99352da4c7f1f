"""Rewrite a program so that it survives its failures in a dry run.

Each statement of a function gets a handler that makes the names unknown which the statement binds,
a loop asks for each of its iterations, a `with` survives a context that cannot be entered, all
branches run where a condition is unknown (`branching.py`), and calls are announced. Only the tree
is rewritten, so the lines stay. Outside of a dry run, and inside of a function that JAX traces,
rewritten code behaves like the original (`runtime.py`).
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from jaxsight.text.names import bound_in_scope, parameters_of
from jaxsight.tracer.dry_runs import branching, nodes
from jaxsight.tracer.dry_runs.branching import BranchPlace
from jaxsight.tracer.dry_runs.nodes import Node
from jaxsight.tracer.observation import call_entries, instrumentation
from jaxsight.tracer.observation.call_entries import Entry

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
_OURS = frozenset({nodes.NAME, instrumentation.NAME, call_entries.NAME})


@dataclass(frozen=True, slots=True)
class NestedEntry:
    """A function of the program, nested ones with `<locals>`."""

    name: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What was rewritten: the functions with parameters, by number, and the names of all."""

    entries: list[NestedEntry]
    names: frozenset[str]


def rewrite(tree: ast.Module, first: int, *, reports: bool = False) -> Rewritten:
    """Rewrite a module's tree in place; the numbers of its functions begin at `first`.

    Args:
        tree: the tree.
        first: the first number.
        reports: whether functions that are not nested report their calls already.
    """
    rewriting = _Rewriting(first, reports)
    tree.body = rewriting.block(tree.body, frozenset())
    ast.fix_missing_locations(tree)
    return Rewritten(rewriting.entries, frozenset(rewriting.functions))


class _Calls(branching.ConditionRewriter):
    """Announces calls, and the items of comprehensions."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _NOT_CALLED | _OURS:
            return node
        call = ast.Call(nodes.runtime("call", node), [node.func, *node.args], node.keywords)
        return ast.copy_location(call, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._with_items(node, 0)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> ast.AST:
        number = node.lineno * 1000 + node.col_offset
        return nodes.call("listed", number, self._with_items(node, number), at=node)

    visit_SetComp = visit_DictComp = visit_ListComp

    def _with_items(self, node: Node, number: int) -> Node:
        self.generic_visit(node)
        for each in node.generators:  # type: ignore[attr-defined]
            each.iter = nodes.call("each", number, each.iter, at=each.iter)
        return node


class _Rewriting:
    def __init__(self, first: int, reports: bool) -> None:
        self.first, self.reports = first, reports
        self.entries: list[NestedEntry] = []
        self.functions: set[str] = set()
        self.names: tuple[str, ...] = ()
        """The qualified name of the function or class around the current statement, in parts."""
        self.in_function = False
        self.place = BranchPlace()

    def block(self, body: Iterable[ast.stmt], own: frozenset[str]) -> list[ast.stmt]:
        """Return rewritten statements; `own` are the local names of the function around them."""
        return [new for statement in body for new in self.statement(statement, own)]

    def statement(self, node: ast.stmt, own: frozenset[str]) -> Iterator[ast.stmt]:
        match node:
            case ast.If() | ast.Match():
                yield self.handled(node, self.forked(node, own), own)
            case ast.Return():
                node = _with_calls(node)
                if self.place.may_return:
                    node.value = self.place.leaving("return", node.value or ast.Constant(None))
                yield self.handled(node, [node], own, leaves=True)
            case ast.Break() | ast.Continue() if self.place.in_branch:
                how = type(node).__name__.lower()
                yield from (nodes.placed(ast.Expr(self.place.leaving(how)), node), node)
            case ast.Raise(exc=ast.expr() as error) if self.place.in_branch:
                node.exc = nodes.placed(self.place.leaving("raise", error), node)
                yield node
            case _ if self.place.tried and not isinstance(node, ast.Try):
                yield self.tried(node, own)
            case ast.FunctionDef():
                number = self.function(node)
                yield self.handled(node, [node], own)
                if self.in_function and number is not None:
                    yield nodes.statement("decorated", node, number, nodes.name(node.name))
            case ast.ClassDef():
                self.class_(node)
                yield self.handled(node, [node], own)
            case ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Pass():
                yield node
            case ast.Break() | ast.Continue() | ast.Raise() | ast.ImportFrom(module="__future__"):
                yield node
            case ast.Import() | ast.ImportFrom():
                context = ast.withitem(nodes.call("importing", at=node))
                importing = nodes.placed(ast.With([context], [node]), node)
                yield self.handled(node, [importing, nodes.statement("imported", node)], own)
            case ast.For():
                yield from self.loop(node, own, [])
            case ast.While():
                test = branching.tested(_with_calls(node.test), node)
                goes_on = nodes.call("goes_on", nodes.name(branching.TEST), branching.number(node))
                ends = ast.If(ast.UnaryOp(ast.Not(), goes_on), [ast.Break()], [])
                yield from self.loop(_as_for(node), own, [test, nodes.placed(ends, node)])
            case ast.With():
                self.context(node, own)
                yield self.handled(node, [node], own)
            case ast.Try():
                if node.handlers:
                    node.body = [self.judged(node, own)]
                else:
                    node.body = self.block(node.body, own)
                for handler in node.handlers:
                    handler.body = self.block(handler.body, own)
                node.orelse = self.block(node.orelse, own)
                node.finalbody = self.block(node.finalbody, own)
                yield self.handled(node, [node], own)
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _read_and_bound(node):
                before = nodes.thunk(nodes.name(name))
                node.value = nodes.call("updated", _with_calls(node.value), before, at=node)
                yield self.handled(node, [nodes.placed(node, node)], own)
            case _:
                yield self.handled(node, [_with_calls(node)], own)

    def handled(
        self, node: ast.stmt, body: list[ast.stmt], own: frozenset[str], *, leaves: bool = False
    ) -> ast.stmt:
        """Return statements with a handler, for the names that `node` binds or changes."""
        if self.place.tried:
            return nodes.placed(ast.If(ast.Constant(True), body, []), node)
        after: list[ast.stmt] = [nodes.statement("failed", node, nodes.name(_ERROR))]
        stored, changed = _stored(node), _changed(node)
        kept = _read_and_bound(node) if isinstance(node, ast.Assign) else set()
        for name in sorted(stored):
            unknown = nodes.assign(name, nodes.runtime("unknown"))
            if name in kept:
                state = nodes.assign(name, nodes.call("state", nodes.name(name)))
                after.append(nodes.unless_unbound(state, unknown))
            else:
                after.append(unknown)
        for name in sorted(changed - stored):
            value = nodes.call("changed", nodes.name(name))
            local = name in own or not self.in_function
            statement = nodes.assign(name, value) if local else ast.Expr(value)
            after.append(nodes.unless_unbound(statement))
        if self.in_function:
            after.append(nodes.assign(_FAILED, ast.Constant(value=True)))
        if leaves:
            returned = nodes.runtime("unknown")
            leaving = self.place.leaving("return", returned)
            after.append(ast.Return(leaving if self.place.may_return else returned))
        handler = ast.ExceptHandler(nodes.name("BaseException"), _ERROR, after)
        return nodes.placed(ast.Try(body, [handler], [], []), node)

    def function(self, node: ast.FunctionDef) -> int | None:
        """Rewrite a function in place; return its number, if its calls are noted."""
        names, in_function, place = self.names, self.in_function, self.place
        nested = (*names, "<locals>", node.name) if in_function else (*names, node.name)
        self.names, self.in_function, self.place = nested, True, branching.place_in(node)
        self.functions.add(".".join(nested))
        try:
            wanted = in_function or not self.reports
            entry = call_entries.entry_of(node, ()) if wanted else None
            number = self.first + len(self.entries)
            start = 1 if ast.get_docstring(node, clean=False) is not None else 0
            docstring, body = node.body[:start], node.body[start:]
            head: list[ast.stmt] = []
            if entry is not None:
                self.entries.append(NestedEntry(".".join(nested), entry))
                head.append(call_entries.statement(node, entry, number))
                head[0].value.func = nodes.runtime("entered", node)  # type: ignore[attr-defined]
            rewrites = not any(
                _TRACED.search(ast.unparse(each)) for each in node.decorator_list
            ) and not any(
                isinstance(each, ast.Yield | ast.YieldFrom) for each in nodes.own_nodes(node.body)
            )
            if rewrites:
                own = _locals(node)
                failed = ast.If(nodes.name(_FAILED), [ast.Return(nodes.runtime("unknown"))], [])
                end: list[ast.stmt] = [failed]
                if self.place.may_return:
                    nothing = ast.Constant(None)
                    end.append(ast.Return(self.place.leaving("return", nothing)))
                body = [
                    nodes.statement("began", node, ".".join(nested)),
                    nodes.placed(nodes.assign(_FAILED, ast.Constant(value=False)), node),
                    *self.block(body, own),
                    *(nodes.placed(each, node) for each in end),
                ]
            node.body = [*docstring, *head, *body]
            if in_function and entry is not None:
                node.decorator_list.append(nodes.call("defined", number, at=node))
            return number if entry is not None else None
        finally:
            self.names, self.in_function, self.place = names, in_function, place

    def class_(self, node: ast.ClassDef) -> None:
        """Rewrite the methods of a class in place, unless it may be one of modules."""
        names, in_function = self.names, self.in_function
        self.names = (*names, *(("<locals>",) if in_function else ()), node.name)
        plain = all(_PLAIN_BASES.search(ast.unparse(base)) for base in node.bases)
        if plain and not node.decorator_list:
            self.in_function = False
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("__"):
                    self.function(statement)
        self.names, self.in_function = names, in_function

    def forked(self, node: ast.If | ast.Match, own: frozenset[str]) -> list[ast.stmt]:
        """Return the branches of a statement one after another, each if it is to run."""
        roots, branches = _changed(node), branching.branches_of(node)
        names = _stored(node) | {n for n in roots if n in own or not self.in_function}
        test = _with_calls(node.test if isinstance(node, ast.If) else node.subject)
        block = functools.partial(self.block_at, own)
        return branching.forked(
            node, branches, test, sorted(names), sorted(roots), self.place, block
        )

    def block_at(
        self, own: frozenset[str], body: list[ast.stmt], place: BranchPlace
    ) -> list[ast.stmt]:
        """Return rewritten statements at another place."""
        before, self.place = self.place, place
        statements = self.block(body, own)
        self.place = before
        return statements

    def tried(self, node: ast.stmt, own: frozenset[str]) -> ast.stmt:
        """Rewrite the branches in a statement of a `try` with handlers, in place."""
        is_loop = isinstance(node, ast.For | ast.While)
        place = replace(self.place, loop=branching.number(node)) if is_loop else self.place
        if isinstance(node, ast.For | ast.While | ast.With):
            node.body = self.block_at(own, node.body, place)
        return node

    def loop(self, node: ast.For, own: frozenset[str], head: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield a loop that asks for each iteration, and what is done after it."""
        number = branching.number(node)
        items = nodes.thunk(_with_calls(node.iter))
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        changing = own if self.in_function else _stored(node) | _changed(node)
        listed = ast.Constant(cast("Any", tuple(sorted(names))))
        node.iter = nodes.call("turns", number, items, _template(node.target), listed, at=node)
        values = ast.Call(nodes.name("locals"), [], [])
        note = nodes.statement("turned", node, number, values, listed)
        body = [*head, *self.block_at(own, node.body, replace(self.place, loop=number))]
        node.body = [ast.Try(body, [], [], [note])]
        node.orelse = self.block(node.orelse, own)
        yield self.handled(node, [node], own)
        settle = [
            nodes.unless_unbound(nodes.assign(name, nodes.call("settled", name, nodes.name(name))))
            for name in sorted(names)
            if name in changing
        ]
        if settle:
            yield nodes.placed(ast.If(nodes.call("was_cut", number, at=node), settle, []), node)

    def judged(self, node: ast.Try, own: frozenset[str]) -> ast.stmt:
        """Return the body of a `try` whose handlers get no error that a real run would not have."""
        body = self.block_at(own, node.body, replace(self.place, tried=branching.number(node)))
        judged = ast.Raise(nodes.call("judged", nodes.name(_ERROR)))
        handler = ast.ExceptHandler(nodes.name("BaseException"), _ERROR, [judged])
        return nodes.placed(ast.Try(body, [handler], [], []), node)

    def context(self, node: ast.With, own: frozenset[str]) -> None:
        """Rewrite a `with` in place, so that it survives contexts that cannot be entered."""
        for item in node.items:
            if branching.is_movable(item.context_expr):
                expression = nodes.thunk(_with_calls(item.context_expr))
                template = _template(item.optional_vars)
                item.context_expr = nodes.call("context", expression, template, at=node)
        node.body = self.block(node.body, own)


def _with_calls(node: Node) -> Node:
    """Return a node whose calls are announced."""
    return cast("Node", _Calls().visit(node))


def _as_for(node: ast.While) -> ast.For:
    """Return a `while` loop as an endless `for` loop, whose condition has to be added."""
    loop = ast.For(ast.Name(_TURN, nodes.STORE), nodes.call("endless"), node.body, [])
    at = ast.copy_location(loop, node)
    ast.fix_missing_locations(at)
    return at


def _template(target: ast.expr | None) -> ast.expr:
    """Return the structure that a target unpacks, as nested tuples of `None`."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return ast.Tuple([_template(part) for part in parts], nodes.LOAD)
        case _:
            return ast.Constant(None)


def _locals(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names that a function binds itself."""
    declared = (
        each for each in nodes.own_nodes(node.body) if isinstance(each, ast.Global | ast.Nonlocal)
    )
    outside = {name for each in declared for name in each.names}
    stored = {name for statement in node.body for name in _stored(statement)}
    return frozenset((*parameters_of(node.args), *stored)) - outside


def _stored(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    return {n for n in bound_in_scope(statement) if n != "*" and not n.startswith("__jaxsight_")}


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of objects that a statement may change in place."""
    names: set[str] = set()
    for node in nodes.own_nodes([statement]):
        match node:
            case ast.Call(func=called) if isinstance(nodes.plain(called), ast.Attribute):
                names.add(_root(called))
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names.add(_root(node))
            case _:
                pass
    return names - {nodes.NAME, ""}


def _root(node: ast.expr) -> str:
    """Return the name that an attribute or item is of; empty if there is none."""
    node = nodes.plain(node)
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = nodes.plain(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def _read_and_bound(statement: ast.Assign) -> set[str]:
    """Return the names that an assignment binds to the result of a call that takes them."""
    value = nodes.plain(statement.value)
    if not isinstance(value, ast.Call):
        return set()
    taken = {
        node.id
        for argument in (*value.args, *(k.value for k in value.keywords))
        for node in ast.walk(argument)
        if isinstance(node, ast.Name)
    }
    return taken & _stored(statement)
