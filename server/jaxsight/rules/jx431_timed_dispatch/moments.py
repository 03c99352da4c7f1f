"""What happens in a scope, in the order in which Python evaluates it, and what lies between clocks.

A wait that may happen counts as one, and so does a call that may wait: what remains is certain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from jaxsight.rules.jx431_timed_dispatch.dispatches import WAITS, DispatchScope
from jaxsight.rules.text.expressions import FunctionNode, dotted, name_of
from jaxsight.rules.text.statements import own_statements, written
from jaxsight.text.names import bound_in_scope

CLOCK = re.compile(
    r"time\.(time|perf_counter|monotonic)(_ns)?|timeit\.default_timer|"
    r"datetime\.(datetime\.)?(now|utcnow)"
)
_ABOUT_DISPATCH = re.compile(
    r"(?<![a-z])(compil(e(?!d)|ing|ation)|trac(e(?!d)|ing)|lower(ing)?(?![a-z])|jitting)|"
    r"(?<![a-z])(warm|cold|dispatch|enqueu|async|overhead|launch|first)",
    re.IGNORECASE,
)
"""Words of those who measure something else than the computation."""
_STATIC = frozenset(
    {"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "sharding", "aval", "weak_type"}
)
_ASKS = frozenset(
    {
        "isinstance", "issubclass", "type", "id", "len", "hasattr", "callable", "range",
        "enumerate", "zip", "getattr", "iter", "next", "locals", "globals", "super", "tqdm",
        "trange", "partial",
    }
)  # fmt: skip
"""Functions that wait for no value."""
_NUMBERS = frozenset({"float", "int", "bool", "complex", "print", "str", "repr"})
"""Functions that wait for what they are given."""
_KEEPS = frozenset({"append", "appendleft", "add", "insert", "extend"})
ARRAY_METHODS = frozenset(
    {
        "sum", "mean", "max", "min", "reshape", "astype", "dot", "transpose", "ravel", "flatten",
        "squeeze", "std", "var", "prod", "any", "all", "argmax", "argmin", "sort", "argsort",
        "cumsum", "clip", "round", "conj", "swapaxes", "set", "multiply", "get", "take", "copy",
        "items", "keys", "values", "replace", "_replace", "copy_to_host_async",
    }
)  # fmt: skip
"""Methods of arrays and containers that wait for no value."""


class Happening(Enum):
    """What happens at a moment."""

    READS_CLOCK = auto()
    DISPATCHES = auto()
    WAITS = auto()
    CALLS = auto()
    """Something is called of which nothing is known but that it is not given any result."""


@dataclass(frozen=True, slots=True)
class TimedBlock:
    """A branch or the body of a loop."""

    node: ast.AST
    branch: str
    repeats: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a scope."""

    what: Happening
    node: ast.AST
    statement: ast.stmt
    blocks: tuple[TimedBlock, ...]
    is_compiled: bool = False
    """Whether a function of the user's is dispatched, rather than one of JAX's library."""


@dataclass(frozen=True, slots=True)
class Unawaited:
    """What is dispatched and not waited for."""

    call: ast.Call
    statement: ast.stmt
    loops: int
    """The number of loops that it is in, within what is timed."""


@dataclass(frozen=True, slots=True)
class _Elapsed:
    """A difference of two times, with the moments at which they were read."""

    node: ast.BinOp
    statement: ast.stmt
    start: int
    stop: int


class Moments:
    """The moments of a scope."""

    def __init__(self, scope: DispatchScope, body: Sequence[ast.stmt], name: str = "") -> None:
        """Follow a scope.

        Args:
            scope: what its names stand for.
            body: its statements.
            name: the function's, empty for the module and for expressions.
        """
        self._scope = scope
        self._body = body
        self._name = name
        self._held = self._results()
        self._all: list[Moment] = []
        self._clocks: dict[str, list[int]] = {}
        """By the name that a time is bound to, the moments at which it was read."""
        self._elapsed: list[_Elapsed] = []
        self._statement: ast.stmt = ast.Pass()
        self._blocks: tuple[TimedBlock, ...] = ()
        self._run(body)

    def unawaited(self) -> Iterator[Unawaited]:
        """Yield what is dispatched last between two readings of a clock and not waited for."""
        others = {(each.start, each.stop) for each in self._elapsed if self._is_about_else(each)}
        found: list[ast.Call] = []
        for elapsed in self._elapsed:
            last = self._last_between(elapsed)
            if last is not None and last.call not in found:
                found.append(last.call)
                if (elapsed.start, elapsed.stop) not in others:
                    yield last

    def unawaited_at_the_end(self) -> Unawaited | None:
        """Return what is dispatched last in the whole scope and not waited for."""
        return self._last(0, len(self._all), ())

    def _last_between(self, elapsed: _Elapsed) -> Unawaited | None:
        """Return what is dispatched last before the clock is read, unless something waits."""
        around, at_stop = self._all[elapsed.start].blocks, self._all[elapsed.stop].blocks
        if at_stop[: len(around)] != around:
            return None
        repeated = [block for block in at_stop[len(around) :] if block.repeats]
        if any(map(self._waits_in, repeated)):
            return None
        return self._last(elapsed.start + 1, elapsed.stop, around)

    def _last(self, start: int, stop: int, around: tuple[TimedBlock, ...]) -> Unawaited | None:
        between = self._all[start:stop]
        waits = [at for at, moment in enumerate(between) if moment.what is Happening.WAITS]
        after = between[waits[-1] + 1 if waits else 0 :]
        dispatches = [moment for moment in after if moment.what is Happening.DISPATCHES]
        if not dispatches:
            return None
        last = dispatches[-1]
        loops = [block for block in last.blocks if block.repeats and block not in around]
        if any(map(self._waits_in, loops)):
            return None
        if not any(moment.is_compiled for moment in dispatches) and any(
            moment.what is Happening.CALLS for moment in between
        ):
            return None  # what else is called may be what is measured
        assert isinstance(last.node, ast.Call)
        return Unawaited(last.node, last.statement, len(loops))

    def _waits_in(self, loop: TimedBlock) -> bool:
        return any(moment.what is Happening.WAITS and loop in moment.blocks for moment in self._all)

    def _is_about_else(self, elapsed: _Elapsed) -> bool:
        """Whether words around a measurement say that it is not about the computation."""
        texts = [self._name, written(elapsed.node), _words(elapsed.statement)]
        names = set(bound_in_scope(elapsed.statement, blocks=False))
        following = own_statements(self._body)
        for statement in following:
            if statement is elapsed.statement:
                break
        for statement in following if names else ():
            if not names.isdisjoint(bound_in_scope(statement, blocks=False)):
                break
            if any(isinstance(n, ast.Name) and n.id in names for n in _own(statement)):
                texts.append(_words(statement))
        return any(_ABOUT_DISPATCH.search(text) for text in texts)

    def _results(self) -> frozenset[str]:
        """Return the names that may hold results, of dispatched functions or made from them."""
        self._held = frozenset()
        for _ in range(3):  # through up to three names in loops
            held = set(self._held)
            for statement in own_statements(self._body):
                for node in _own(statement):
                    for target, value in _bound(node):
                        if self._holds(value):
                            held.update(_names(target))
                self._held = frozenset(held)
        return self._held

    def _holds(self, node: ast.AST) -> bool:
        """Whether an expression may be, or hold, a result that is not computed yet."""
        match node:
            case ast.Name(id=name):
                return name in self._held
            case ast.Constant() | ast.Lambda():
                return False
            case ast.Attribute(value=value, attr=attr):
                return attr not in _STATIC and (dotted(node) in self._held or self._holds(value))
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                return False
            case ast.Call() if name_of(node) in _ASKS:
                return False
            case ast.Call() if self._scope.dispatches(node):
                return True
            case _:
                return any(map(self._holds, ast.iter_child_nodes(node)))

    def _add(self, what: Happening, node: ast.AST, *, is_compiled: bool = False) -> None:
        self._all.append(Moment(what, node, self._statement, self._blocks, is_compiled))

    def _run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement = statement
            self._execute(statement)

    def _inside(
        self, node: ast.AST, branch: str, body: Iterable[ast.stmt], *, repeats: bool = False
    ) -> None:
        around = self._blocks
        self._blocks = (*around, TimedBlock(node, branch, repeats))
        self._run(body)
        self._blocks = around

    def _execute(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return
            case ast.If(test=test, body=body, orelse=orelse):
                self._decide(test)
                self._inside(node, "body", body)
                self._inside(node, "else", orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                around = self._blocks
                self._blocks = (*around, TimedBlock(node, "body", repeats=True))
                self._decide(test)
                self._blocks = around
                self._inside(node, "body", body, repeats=True)
                self._inside(node, "else", orelse)
            case (
                ast.For(iter=iterable, body=body, orelse=orelse)
                | ast.AsyncFor(iter=iterable, body=body, orelse=orelse)
            ):
                self._evaluate(iterable)
                self._inside(node, "body", body, repeats=True)
                self._inside(node, "else", orelse)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._evaluate(item.context_expr)
                self._run(body)
                for item in items:  # what is called may wait when it is left
                    manager = item.context_expr
                    if isinstance(manager, ast.Call):
                        full = self._scope.full(manager.func)
                        if not full.startswith(("jax.", "open")):
                            self._add(Happening.WAITS, manager)
            case ast.Try() | ast.TryStar():
                self._run([*node.body, *node.orelse])
                for number, handler in enumerate(node.handlers):
                    self._inside(node, f"handler {number}", handler.body)
                self._run(node.finalbody)
            case ast.Match(subject=subject, cases=cases):
                self._evaluate(subject)
                for number, case in enumerate(cases):
                    self._inside(node, f"case {number}", case.body)
            case ast.Assert(test=test):
                self._decide(test)
            case ast.Assign(targets=targets, value=value):
                self._evaluate(value)
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._evaluate(value)
                self._bind(target, value)
            case _:
                for child in ast.iter_child_nodes(node):
                    self._evaluate(child)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Remember that a name has a time, or no longer has one."""
        name = dotted(target)
        last = self._all[-1] if self._all else None
        if last is not None and last.node is value and last.what is Happening.READS_CLOCK:
            self._clocks.setdefault(name, []).append(len(self._all) - 1)
        elif name:
            self._clocks.pop(name, None)

    def _decide(self, test: ast.expr) -> None:
        """Evaluate a condition: the truth of an array is waited for."""
        self._evaluate(test)
        if self._holds(test):
            self._add(Happening.WAITS, test)

    def _evaluate(self, node: ast.AST) -> None:
        """Add the moments of an expression, those of its parts first."""
        match node:
            case ast.Lambda() | ast.Constant():
                return
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._decide(test)
                self._evaluate(body)
                self._evaluate(orelse)
                return
            case ast.BoolOp(values=[*conditions, last]):
                for condition in conditions:
                    self._decide(condition)
                self._evaluate(last)
                return
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                around = self._blocks
                self._blocks = (*around, TimedBlock(node, "body", repeats=True))
                for child in ast.iter_child_nodes(node):
                    self._evaluate(child)
                self._blocks = around
                return
        for child in ast.iter_child_nodes(node):
            self._evaluate(child)
        match node:
            case ast.Call():
                self._call(node)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.BinOp(op=ast.Sub(), left=left, right=right):
                stop = self._reading(left, len(self._all))
                start = self._reading(right, stop) if stop is not None else None
                if start is not None and stop is not None:
                    self._elapsed.append(_Elapsed(node, self._statement, start, stop))
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str()), right=value):
                self._wait_for(node, value)
            case ast.FormattedValue(value=value):
                self._wait_for(node, value)
            case ast.Subscript(value=value, slice=index) if not self._holds(value):
                self._wait_for(node, index)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                self._wait_for(node, value)
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self._add(Happening.WAITS, node)

    def _reading(self, node: ast.expr, before: int) -> int | None:
        """Return the moment at which a time was read last before another one."""
        readings = self._clocks.get(dotted(node), [])
        if isinstance(node, ast.Call) and CLOCK.fullmatch(self._scope.full(node.func)):
            readings = [at for at, moment in enumerate(self._all) if moment.node is node]
        return next((at for at in reversed(readings) if at < before), None)

    def _wait_for(self, node: ast.AST, value: ast.expr) -> None:
        if self._holds(value):
            self._add(Happening.WAITS, node)

    def _call(self, call: ast.Call) -> None:
        scope, name = self._scope, name_of(call)
        full = scope.full(call.func)
        given = [*call.args, *(word.value for word in call.keywords)]
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if CLOCK.fullmatch(full):
            self._add(Happening.READS_CLOCK, call)
        elif scope.dispatches(call):
            compiled = scope.is_function(call.func)
            self._add(Happening.DISPATCHES, call, is_compiled=compiled)
        elif scope.may_wait(call) or any(map(self._may_wait, given)):
            self._add(Happening.WAITS, call)
        elif name in _ASKS or full.startswith(("jax.", "time.")):
            return
        elif any(map(self._holds, given)):
            if name not in _KEEPS:
                self._add(Happening.WAITS, call)
        elif receiver is not None and self._holds(receiver):
            if name not in ARRAY_METHODS:
                self._add(Happening.WAITS, call)
        elif name not in ("print", "append"):
            self._add(Happening.CALLS, call)

    def _may_wait(self, function: ast.expr) -> bool:
        """Whether a function that is given to another one may wait for what it is called with.

        `jax.tree.map(lambda x: x.block_until_ready(), y)`, `jax.tree.map(np.asarray, y)`
        """
        scope = self._scope
        match function:
            case ast.Lambda(body=body):
                calls = [node for node in ast.walk(body) if isinstance(node, ast.Call)]
                functions = [call.func for call in calls]
                return any(map(scope.may_wait, calls)) or any(map(self._may_wait, functions))
            case ast.Name() | ast.Attribute():
                full = scope.full(function)
                is_waiting = dotted(function).rpartition(".")[2] in WAITS | scope.waiting
                return is_waiting or full in _NUMBERS or full.startswith("numpy.")
            case _:
                return False


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without those of the statements and functions in it."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case | ast.Lambda)
        )


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a node binds, with the expression that it is made from."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield target, value
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
            | ast.withitem(context_expr=value, optional_vars=ast.expr() as target)
        ):
            yield target, value
        case ast.Call(func=ast.Attribute(value=container, attr=attr), args=[*_, value]) if (
            attr in _KEEPS
        ):
            yield container, value


def _names(target: ast.expr) -> Iterator[str]:
    """Yield the names and attributes that a target binds, or whose items it binds."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _names(part)
        case ast.Starred(value=inner) | ast.Subscript(value=inner):
            yield from _names(inner)
        case _ if name := dotted(target):
            yield name


def _words(statement: ast.stmt) -> str:
    """Return the names and texts of a statement, without those of the statements in it."""
    parts = []
    for node in _own(statement):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                parts.append(word)
            case ast.keyword(arg=str(word)):
                parts.append(word)
    return " ".join(parts)
