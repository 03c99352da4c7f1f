"""Rewrite a program so that it survives its failures in a dry run.

Each statement of a function gets a handler that makes the names unknown which the statement binds,
a loop asks for each of its iterations, a `with` survives a context that cannot be entered, and
calls are announced. Only the tree is rewritten, so the lines stay. Outside of a dry run, and inside
of a function that JAX traces, rewritten code behaves like the original (`runtime.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from jaxsight.text.names import bound_in_scope, parameters_of
from jaxsight.tracer.observation import call_entries, instrumentation
from jaxsight.tracer.observation.call_entries import Entry

NAME = "__jaxsight_dry__"
"""The builtin that rewritten code calls: a `Runtime`."""
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
_OURS = frozenset({NAME, instrumentation.NAME, call_entries.NAME})
_LOAD, _STORE = ast.Load(), ast.Store()
Node = TypeVar("Node", bound=ast.AST)


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


class _Calls(ast.NodeTransformer):
    """Announces calls, and the items of comprehensions."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _NOT_CALLED | _OURS:
            return node
        call = ast.Call(_runtime("call", node), [node.func, *node.args], node.keywords)
        return ast.copy_location(call, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._with_items(node, 0)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> ast.AST:
        number = node.lineno * 1000 + node.col_offset
        return _call("listed", number, self._with_items(node, number), at=node)

    visit_SetComp = visit_DictComp = visit_ListComp

    def _with_items(self, node: Node, number: int) -> Node:
        self.generic_visit(node)
        for each in node.generators:  # type: ignore[attr-defined]
            each.iter = _call("each", number, each.iter, at=each.iter)
        return node


class _Rewriting:
    def __init__(self, first: int, reports: bool) -> None:
        self.first, self.reports = first, reports
        self.entries: list[NestedEntry] = []
        self.functions: set[str] = set()
        self.names: tuple[str, ...] = ()
        """The qualified name of the function or class around the current statement, in parts."""
        self.in_function = False

    def block(self, body: Iterable[ast.stmt], own: frozenset[str]) -> list[ast.stmt]:
        """Return rewritten statements; `own` are the local names of the function around them."""
        return [new for statement in body for new in self.statement(statement, own)]

    def statement(self, node: ast.stmt, own: frozenset[str]) -> Iterator[ast.stmt]:
        match node:
            case ast.FunctionDef():
                number = self.function(node)
                made = (_call("decorator", _thunk(each), at=each) for each in node.decorator_list)
                node.decorator_list = [*made]
                yield self.handled(node, [node], own)
                if self.in_function and number is not None:
                    yield _statement("decorated", node, number, _name(node.name))
            case ast.ClassDef():
                self.class_(node)
                yield self.handled(node, [node], own)
            case ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Pass():
                yield node
            case ast.Break() | ast.Continue() | ast.Raise():
                yield node
            case ast.ImportFrom(module="__future__"):
                yield node
            case ast.Import() | ast.ImportFrom():
                context = ast.withitem(_call("importing", at=node))
                importing = _at(ast.With([context], [node]), node)
                yield self.handled(node, [importing, _statement("imported", node)], own)
            case ast.Return():
                yield self.handled(node, [_with_calls(node)], own, leaves=True)
            case ast.For():
                yield from self.loop(node, own)
            case ast.While():
                yield from self.loop(_as_for(node), own)
            case ast.With():
                self.context(node, own)
                yield self.handled(node, [node], own)
            case ast.If():
                node.test = _with_calls(node.test)
                node.body, node.orelse = self.block(node.body, own), self.block(node.orelse, own)
                yield self.handled(node, [node], own)
            case ast.Match():
                for case in node.cases:
                    case.body = self.block(case.body, own)
                yield self.handled(node, [node], own)
            case ast.Try():
                if node.handlers:
                    node.body = [self.judged(node)]
                else:
                    node.body = self.block(node.body, own)
                for handler in node.handlers:
                    handler.body = self.block(handler.body, own)
                node.orelse = self.block(node.orelse, own)
                node.finalbody = self.block(node.finalbody, own)
                yield self.handled(node, [node], own)
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _read_and_bound(node):
                before = _thunk(_name(name))
                node.value = _call("updated", _with_calls(node.value), before, at=node)
                yield self.handled(node, [_at(node, node)], own)
            case ast.Assign(targets=[ast.Tuple(elts=parts)]) if _is_unpacking(node, parts):
                node.value = _call("unpacked", _with_calls(node.value), len(parts), at=node)
                yield self.handled(node, [_at(node, node)], own)
            case _:
                yield self.handled(node, [_with_calls(node)], own)

    def handled(
        self, node: ast.stmt, body: list[ast.stmt], own: frozenset[str], *, leaves: bool = False
    ) -> ast.stmt:
        """Return statements with a handler, for the names that `node` binds or changes."""
        after: list[ast.stmt] = [_statement("failed", node, _name(_ERROR))]
        stored, changed = _stored(node), _changed(node)
        kept = _read_and_bound(node) if isinstance(node, ast.Assign) else set()
        for name in sorted(stored):
            unknown = _assign(name, _runtime("unknown"))
            if name in kept:
                state = _assign(name, _call("state", _name(name)))
                after.append(_unless_unbound(state, unknown))
            else:
                after.append(unknown)
        for name in sorted(changed - stored):
            value = _call("changed", _name(name))
            local = name in own or not self.in_function
            after.append(_unless_unbound(_assign(name, value) if local else ast.Expr(value)))
        if self.in_function:
            after.append(_assign(_FAILED, ast.Constant(value=True)))
        if leaves:
            after.append(ast.Return(_runtime("unknown")))
        handler = ast.ExceptHandler(_name("BaseException"), _ERROR, after)
        return _at(ast.Try(body, [handler], [], []), node)

    def function(self, node: ast.FunctionDef) -> int | None:
        """Rewrite a function in place; return its number, if its calls are noted."""
        names, in_function = self.names, self.in_function
        nested = (*names, "<locals>", node.name) if in_function else (*names, node.name)
        self.names, self.in_function = nested, True
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
                head[0].value.func = _runtime("entered", node)  # type: ignore[attr-defined]
            rewrites = not any(map(_is_traced, node.decorator_list)) and not any(
                isinstance(each, ast.Yield | ast.YieldFrom) for each in _own_nodes(node.body)
            )
            if rewrites:
                own = _locals(node)
                body = [
                    _statement("began", node, ".".join(nested)),
                    _at(_assign(_FAILED, ast.Constant(value=False)), node),
                    *self.block(body, own),
                    _at(ast.If(_name(_FAILED), [ast.Return(_runtime("unknown"))], []), node),
                ]
            node.body = [*docstring, *head, *body]
            if in_function and entry is not None:
                node.decorator_list.append(_call("defined", number, at=node))
            return number if entry is not None else None
        finally:
            self.names, self.in_function = names, in_function

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

    def loop(self, node: ast.For, own: frozenset[str]) -> Iterator[ast.stmt]:
        """Yield a loop that asks for each iteration, and what is done after it."""
        number = node.lineno * 1000 + node.col_offset
        items = _thunk(_with_calls(node.iter))
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        listed = ast.Constant(cast("Any", tuple(sorted(names))))
        node.iter = _call("turns", number, items, _template(node.target), listed, at=node)
        values = ast.Call(_name("locals"), [], [])
        note = _statement("turned", node, number, values, listed)
        body = self.block(node.body, own)
        node.body = [ast.Try(body, [], [], [note])]
        node.orelse = self.block(node.orelse, own)
        yield self.handled(node, [node], own)
        settle = [
            _unless_unbound(_assign(name, _call("settled", name, _name(name))))
            for name in sorted(names)
            if name in own or (not self.in_function and name in _stored(node))
        ]
        if settle:
            yield _at(ast.If(_call("was_cut", number, at=node), settle, []), node)

    def judged(self, node: ast.Try) -> ast.stmt:
        """Return the body of a `try` whose handlers get no error that a real run would not have."""
        judged = ast.Raise(_call("judged", _name(_ERROR)))
        handler = ast.ExceptHandler(_name("BaseException"), _ERROR, [judged])
        return _at(ast.Try(node.body, [handler], [], []), node)

    def context(self, node: ast.With, own: frozenset[str]) -> None:
        """Rewrite a `with` in place, so that it survives contexts that cannot be entered."""
        for item in node.items:
            if not any(isinstance(n, _UNMOVABLE) for n in ast.walk(item.context_expr)):
                expression = _thunk(_with_calls(item.context_expr))
                template = _template(item.optional_vars)
                item.context_expr = _call("context", expression, template, at=node)
        node.body = self.block(node.body, own)


_UNMOVABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that cannot be evaluated in a function of their own."""


def _with_calls(node: Node) -> Node:
    """Return a node whose calls are announced."""
    return cast("Node", _Calls().visit(node))


def _thunk(node: ast.expr) -> ast.expr:
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)


def _as_for(node: ast.While) -> ast.For:
    """Return a `while` loop as an endless `for` loop that its condition ends."""
    ends = ast.UnaryOp(ast.Not(), _call("goes_on", node.test))
    leave = ast.If(ends, [ast.Break()], [])
    loop = ast.For(ast.Name(_TURN, _STORE), _call("endless"), [leave, *node.body], [])
    at = ast.copy_location(loop, node)
    ast.fix_missing_locations(at)
    return at


def _template(target: ast.expr | None) -> ast.expr:
    """Return the structure that a target unpacks, as nested tuples of `None`."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return ast.Tuple([_template(part) for part in parts], _LOAD)
        case _:
            return ast.Constant(None)


def _locals(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names that a function binds itself."""
    declared = (
        each for each in _own_nodes(node.body) if isinstance(each, ast.Global | ast.Nonlocal)
    )
    outside = {name for each in declared for name in each.names}
    stored = {name for statement in node.body for name in _stored(statement)}
    return frozenset((*parameters_of(node.args), *stored)) - outside


def _own_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of functions and classes inside."""
    queue: list[ast.AST] = [*body]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def _stored(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    return set(bound_in_scope(statement)) - {"*", _ERROR, _FAILED, _TURN}


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of objects that a statement may change in place."""
    names: set[str] = set()
    for node in _own_nodes([statement]):
        match node:
            case ast.Call(func=called) if isinstance(_plain(called), ast.Attribute):
                names.add(_root(called))
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names.add(_root(node))
            case _:
                pass
    return names - {NAME, ""}


def _plain(node: ast.expr) -> ast.expr:
    """Return an expression without the call that records it."""
    match node:
        case ast.Call(func=ast.Name(id=instrumentation.NAME), args=[_, value]):
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
    return not has_star and not isinstance(_plain(node.value), ast.Tuple | ast.List)


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


def _name(name: str) -> ast.Name:
    return ast.Name(name, _LOAD)


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, _STORE)], value)


def _unless_unbound(statement: ast.stmt, otherwise: ast.stmt | None = None) -> ast.stmt:
    """Return a statement that does nothing if it reads a name that is not bound."""
    handler = ast.ExceptHandler(_name("NameError"), None, [otherwise or ast.Pass()])
    return ast.Try([statement], [handler], [], [])


def _is_traced(decorator: ast.expr) -> bool:
    """Return whether a decorator is one of functions that are not rewritten, or is given one.

    What else it is given says nothing, as in `chex.variants(with_jit=True)`.
    """
    named = (
        (decorator.func, *decorator.args[:1]) if isinstance(decorator, ast.Call) else [decorator]
    )
    names = (each for each in named if isinstance(each, ast.Name | ast.Attribute))
    return any(_TRACED.search(ast.unparse(each)) for each in names)


def _runtime(name: str, at: ast.AST | None = None) -> ast.expr:
    """Return an attribute of the runtime."""
    node = ast.Attribute(_name(NAME), name, _LOAD)
    return _at(node, at) if at is not None else node


def _call(method: str, *arguments: int | str | ast.expr, at: ast.AST | None = None) -> ast.Call:
    """Return a call of a method of the runtime."""
    values = [a if isinstance(a, ast.expr) else ast.Constant(a) for a in arguments]
    call = ast.Call(_runtime(method), values, [])
    return _at(call, at) if at is not None else call


def _statement(method: str, at: ast.stmt, *arguments: int | str | ast.expr) -> ast.stmt:
    """Return a statement that calls a method of the runtime."""
    return _at(ast.Expr(_call(method, *arguments)), at)


def _at(node: Node, at: ast.AST) -> Node:
    """Place a new node, and those below it without a place, at another one."""
    ast.copy_location(node, at)
    for each in ast.walk(node):
        has_place = isinstance(each, ast.expr | ast.stmt | ast.excepthandler)
        if has_place and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
        match each:
            case ast.Attribute(value=ast.Name(id=name)) if name == NAME:
                # The line of a method's call is that where its name ends.
                each.end_lineno, each.end_col_offset = each.lineno, each.col_offset
            case _:
                pass
    return node
