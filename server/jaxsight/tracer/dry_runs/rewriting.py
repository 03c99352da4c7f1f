"""Rewrite a program so that it survives its failures in a dry run.

Each statement of a function gets a handler that makes the names unknown which the statement binds,
a loop asks for each of its iterations, a `with` survives a context that cannot be entered, all
branches run where a condition is unknown (`branches.py`), and calls are announced. Only the tree is rewritten, so the lines stay. Outside of a dry run, and inside
of a function that JAX traces, rewritten code behaves like the original (`runtime.py`).
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from jaxsight.text.names import bound_in_scope, parameters_of
from jaxsight.tracer.observation import call_entries, instrumentation
from jaxsight.tracer.observation.call_entries import Entry

NAME = "__jaxsight_dry__"
"""The builtin that rewritten code calls: a `Runtime`."""
_ERROR, _FAILED, _TURN = "__jaxsight_error__", "__jaxsight_failed__", "__jaxsight_turn__"
_TEST, _FORK = "__jaxsight_test__", "__jaxsight_fork_"
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
_NOT_MOVED = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})
"""Builtins that look at the variables around them."""
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

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        kind, right = type(node.ops[0]).__name__, node.comparators[0]
        return _call("compared", kind, node.left, right, at=node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_text = isinstance(node.left, ast.Constant | ast.JoinedStr)
        if is_text or not isinstance(node.op, ast.FloorDiv | ast.Mod):
            return node
        return _call("divided", type(node.op).__name__, node.left, node.right, at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._lazily(node, "chosen", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self._lazily(node, "logical", isinstance(node.op, ast.Or), *node.values)

    def _lazily(self, node: ast.expr, method: str, *parts: bool | ast.expr) -> ast.AST:
        if not _is_movable(node):
            return self.generic_visit(node)
        thunks = (_thunk(self.visit(p)) if isinstance(p, ast.expr) else p for p in parts)
        return _call(method, *thunks, at=node)

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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement is in its function."""

    loop: int = 0
    """The number of the loop around it; 0 if there is none."""
    tried: int = 0
    """That of the `try` with handlers, whose statements do not survive: the handlers get errors."""
    in_branch: bool = False
    may_return: bool = False
    """Whether the function has branches that return."""


class _Rewriting:
    def __init__(self, first: int, reports: bool) -> None:
        self.first, self.reports = first, reports
        self.entries: list[NestedEntry] = []
        self.functions: set[str] = set()
        self.names: tuple[str, ...] = ()
        """The qualified name of the function or class around the current statement, in parts."""
        self.in_function = False
        self.place = _Place()

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
                    node.value = self.leaving("return", node.value or ast.Constant(None))
                yield self.handled(node, [node], own, leaves=True)
            case ast.Break() | ast.Continue() if self.place.in_branch:
                yield from (_at(ast.Expr(self.leaving(type(node).__name__.lower())), node), node)
            case ast.Raise(exc=ast.expr() as error) if self.place.in_branch:
                node.exc = _at(self.leaving("raise", error), node)
                yield node
            case _ if self.place.tried and not isinstance(node, ast.Try):
                yield self.tried(node, own)
            case ast.FunctionDef():
                number = self.function(node)
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
            case ast.For():
                yield from self.loop(node, own, [])
            case ast.While():
                test = _tested(_with_calls(node.test), node)
                goes_on = _call("goes_on", _name(_TEST), _number(node))
                ends = ast.If(ast.UnaryOp(ast.Not(), goes_on), [ast.Break()], [])
                yield from self.loop(_as_for(node), own, [test, _at(ends, node)])
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
                before = _thunk(_name(name))
                node.value = _call("updated", _with_calls(node.value), before, at=node)
                yield self.handled(node, [_at(node, node)], own)
            case _:
                yield self.handled(node, [_with_calls(node)], own)

    def handled(
        self, node: ast.stmt, body: list[ast.stmt], own: frozenset[str], *, leaves: bool = False
    ) -> ast.stmt:
        """Return statements with a handler, for the names that `node` binds or changes."""
        if self.place.tried:
            return _at(ast.If(ast.Constant(True), body, []), node)
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
            unknown = _runtime("unknown")
            left = self.leaving("return", unknown) if self.place.may_return else unknown
            after.append(ast.Return(left))
        handler = ast.ExceptHandler(_name("BaseException"), _ERROR, after)
        return _at(ast.Try(body, [handler], [], []), node)

    def function(self, node: ast.FunctionDef) -> int | None:
        """Rewrite a function in place; return its number, if its calls are noted."""
        names, in_function, place = self.names, self.in_function, self.place
        nested = (*names, "<locals>", node.name) if in_function else (*names, node.name)
        self.names, self.in_function, self.place = nested, True, _Place()
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
            rewrites = not any(
                _TRACED.search(ast.unparse(each)) for each in node.decorator_list
            ) and not any(
                isinstance(each, ast.Yield | ast.YieldFrom) for each in _own_nodes(node.body)
            )
            if rewrites:
                own = _locals(node)
                returns = ast.Return(self.leaving("return", ast.Constant(None)))
                may_return = any(
                    isinstance(each, ast.Return)
                    for inner in _own_nodes(node.body)
                    if isinstance(inner, ast.If | ast.Match)
                    for each in _own_nodes([inner])
                )
                self.place = _Place(may_return=may_return)
                body = [
                    _statement("began", node, ".".join(nested)),
                    _at(_assign(_FAILED, ast.Constant(value=False)), node),
                    *self.block(body, own),
                    _at(ast.If(_name(_FAILED), [ast.Return(_runtime("unknown"))], []), node),
                    *([_at(returns, node)] if may_return else ()),
                ]
            node.body = [*docstring, *head, *body]
            if in_function and entry is not None:
                node.decorator_list.append(_call("defined", number, at=node))
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
        roots, place = _changed(node), self.place
        names = _stored(node) | {n for n in roots if n in own or not self.in_function}
        leaves = {type(each) for each in _own_nodes([node])}
        name = f"{_FORK}{node.lineno}_{node.col_offset}__"
        fork, branches = _name(name), _branches(node)
        subject = node.test if isinstance(node, ast.If) else node.subject
        around = ast.Constant(cast("Any", (place.loop, place.tried)))
        listed = ([b.condition for b in branches], sorted(names), sorted(roots))
        constants = [ast.Constant(cast("Any", tuple(each))) for each in listed]
        method = "fork" if isinstance(node, ast.If) else "cases"
        opened = _call(method, _name(_TEST), *constants, around, at=subject)
        forks = ast.Attribute(fork, "forks", _LOAD)
        restored = [_restored(each, fork) for each in sorted(names)]
        made = [_tested(_with_calls(subject), node), _assign(name, opened)]
        if isinstance(node, ast.Match):
            made.append(ast.If(ast.UnaryOp(ast.Not(), forks), [_matched(node, name)], []))
        self.place = replace(place, in_branch=True)
        for index, branch in enumerate(branches):
            body = self.block(branch.body, own) or [ast.Pass()]
            before = [*(restored if index else ()), *map(_unknown, sorted(branch.captures))]
            enters = ast.Call(ast.Attribute(fork, "enters", _LOAD), [ast.Constant(index)], [])
            entered: list[ast.stmt] = [ast.If(forks, before, [])] if before else []
            made.append(ast.If(enters, [*entered, ast.With([ast.withitem(fork)], body)], []))
        self.place = place
        end: list[ast.stmt] = [ast.Expr(ast.Call(ast.Attribute(fork, "end", _LOAD), [], []))]
        end += restored
        for kind in (ast.Return, ast.Break, ast.Continue):
            if kind in leaves and (self.in_function if kind is ast.Return else place.loop):
                end.append(self.left(fork, kind))
        return [_at(each, node) for each in (*made, ast.If(forks, end, []))]

    def left(self, fork: ast.expr, kind: type[ast.Return | ast.Break | ast.Continue]) -> ast.stmt:
        """Return a statement that leaves as all branches did."""
        name = kind.__name__.lower()
        is_left = ast.Compare(ast.Attribute(fork, "leaves", _LOAD), [ast.Eq()], [ast.Constant(name)])
        leaving = self.leaving(name, ast.Attribute(fork, "result", _LOAD))
        if kind is ast.Return:
            return ast.If(is_left, [ast.Return(leaving)], [])
        return ast.If(is_left, [ast.Expr(leaving), kind()], [])

    def leaving(self, kind: str, *value: ast.expr) -> ast.expr:
        """Return a call that leaves a branch, if it is one of several that run."""
        around = self.place.tried if kind == "raise" else self.place.loop
        return _call("leave", kind, around, *value)

    def tried(self, node: ast.stmt, own: frozenset[str]) -> ast.stmt:
        """Rewrite the branches in a statement of a `try` with handlers, in place."""
        place = self.place
        if isinstance(node, ast.For | ast.While):
            self.place = replace(place, loop=_number(node))
        if isinstance(node, ast.For | ast.While | ast.With):
            node.body = self.block(node.body, own)
        self.place = place
        return node

    def loop(
        self, node: ast.For, own: frozenset[str], head: list[ast.stmt]
    ) -> Iterator[ast.stmt]:
        """Yield a loop that asks for each iteration, and what is done after it."""
        number, place = _number(node), self.place
        items = _thunk(_with_calls(node.iter))
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        listed = ast.Constant(cast("Any", tuple(sorted(names))))
        node.iter = _call("turns", number, items, _template(node.target), listed, at=node)
        values = ast.Call(_name("locals"), [], [])
        note = _statement("turned", node, number, values, listed)
        self.place = replace(place, loop=number)
        body = [*head, *self.block(node.body, own)]
        self.place = place
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

    def judged(self, node: ast.Try, own: frozenset[str]) -> ast.stmt:
        """Return the body of a `try` whose handlers get no error that a real run would not have."""
        place, self.place = self.place, replace(self.place, tried=_number(node))
        body = self.block(node.body, own)
        self.place = place
        judged = ast.Raise(_call("judged", _name(_ERROR)))
        handler = ast.ExceptHandler(_name("BaseException"), _ERROR, [judged])
        return _at(ast.Try(body, [handler], [], []), node)

    def context(self, node: ast.With, own: frozenset[str]) -> None:
        """Rewrite a `with` in place, so that it survives contexts that cannot be entered."""
        for item in node.items:
            if _is_movable(item.context_expr):
                expression = _thunk(_with_calls(item.context_expr))
                template = _template(item.optional_vars)
                item.context_expr = _call("context", expression, template, at=node)
        node.body = self.block(node.body, own)


@dataclass(frozen=True, slots=True)
class _Branch:
    condition: str
    body: list[ast.stmt]
    captures: frozenset[str] = frozenset()
    """The names that its pattern binds."""


def _branches(node: ast.If | ast.Match) -> list[_Branch]:
    """Return the branches of a statement; of a `match`, also the one that no pattern matches."""
    if isinstance(node, ast.If):
        text = _text(node.test)
        return [_Branch(f"`{text}`", node.body), _Branch(f"not `{text}`", node.orelse)]
    text = _text(node.subject)
    branches = [
        _Branch(f"`{text}` is `{_text(c.pattern)}`", c.body, frozenset(bound_in_scope(c.pattern)))
        for c in node.cases
    ]
    return [*branches, _Branch(f"`{text}` is none of these", [])]


def _matched(node: ast.Match, fork: str) -> ast.stmt:
    """Return a `match` that only says which of its branches runs."""
    cases = [
        ast.match_case(c.pattern, c.guard, [_assign(fork, _call("case", index))])
        for index, c in enumerate(node.cases)
    ]
    return ast.Match(_name(_TEST), cases)


def _tested(test: ast.expr, at: ast.stmt) -> ast.stmt:
    """Return a statement that evaluates a condition, which is unknown if it fails because of us."""
    untested = _assign(_TEST, _call("untested", _name(_ERROR), at=at))
    handler = ast.ExceptHandler(_name("BaseException"), _ERROR, [untested])
    return _at(ast.Try([_assign(_TEST, test)], [handler], [], []), at)


def _restored(name: str, fork: ast.expr) -> ast.stmt:
    """Return a statement that gives a variable its value in a fork, or none."""
    value = ast.Call(ast.Attribute(fork, "value", _LOAD), [ast.Constant(name)], [])
    unbound = _unless_unbound(ast.Delete([ast.Name(name, ast.Del())]))
    return _unless_unbound(_assign(name, value), unbound)


def _unknown(name: str) -> ast.stmt:
    return _assign(name, _runtime("unknown"))


class _Recorded(ast.NodeTransformer):
    """Takes off the calls that record expressions."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self.visit(plain) if (plain := _plain(node)) is not node else self.generic_visit(node)


def _text(node: ast.AST) -> str:
    """Return the source of a condition."""
    return ast.unparse(_Recorded().visit(copy.deepcopy(node)))


def _number(node: ast.stmt) -> int:
    """Return a number for a statement, not 0."""
    return node.lineno * 1000 + node.col_offset


_UNMOVABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def _is_movable(node: ast.expr) -> bool:
    """Return whether an expression can be evaluated in a function of its own."""
    return not any(
        isinstance(n, _UNMOVABLE) or (isinstance(n, ast.Name) and n.id in _NOT_MOVED)
        for n in ast.walk(node)
    )


def _with_calls(node: Node) -> Node:
    """Return a node whose calls are announced."""
    return cast("Node", _Calls().visit(node))


def _thunk(node: ast.expr) -> ast.expr:
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)


def _as_for(node: ast.While) -> ast.For:
    """Return a `while` loop as an endless `for` loop, whose condition has to be added."""
    loop = ast.For(ast.Name(_TURN, _STORE), _call("endless"), node.body, [])
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
    names = set(bound_in_scope(statement)) - {"*", _ERROR, _FAILED, _TURN, _TEST}
    return {name for name in names if not name.startswith(_FORK)}


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
    return node
