"""The order in which a function or a module assigns variables and calls functions.

A variable is *changed between calls* if a call comes before an assignment and a call after it, in
the order of the text or in different iterations of a loop around both.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import FunctionNode, Place, dotted, place_of
from jaxsight.rules.text.python_loops import evaluated
from jaxsight.rules.text.statements import blocks_of


@dataclass(frozen=True, slots=True)
class Instant:
    """When something happens in a frame."""

    number: int
    loops: tuple[int, ...]
    """The loops around it, by number."""
    branches: tuple[tuple[int, int], ...]
    """The branches that it is in: each the number of the `if`, and which of its blocks."""

    @property
    def statement(self) -> int:
        """The number of the statement of the module, after `joined`."""
        return self.number // _MOST

    def may_precede(self, other: Instant) -> bool:
        """Whether it comes before another moment, in the text or in an iteration before."""
        if set(self.loops) & set(other.loops):
            return True
        taken = dict(self.branches)
        apart = any(taken.get(at, block) != block for at, block in other.branches)
        return self.number < other.number and not apart


@dataclass(frozen=True, slots=True)
class FrameCall:
    """A call, by the dotted name of the function, with its arguments that are plain names."""

    name: str
    arguments: tuple[tuple[int | str, str], ...]
    constants: str
    """Its source, if all of its arguments are constants, and there are some; else empty."""
    place: Place
    moment: Instant


@dataclass(frozen=True, slots=True)
class StateChange:
    """An assignment to a variable, or to an attribute or item of what it is bound to."""

    name: str
    """`rate`, `model.rate`; the container for an item."""
    place: Place
    moment: Instant
    constant: str
    """The source of a constant; empty for other values."""


@dataclass(frozen=True, slots=True)
class ScopeFrame:
    """What a scope does, in order."""

    calls: tuple[FrameCall, ...]
    changes: tuple[StateChange, ...]
    made: tuple[tuple[str, Instant], ...]
    """When functions are defined and names are first assigned."""

    def made_at(self, name: str) -> Instant | None:
        """Return when a name is first bound."""
        return next((moment for made, moment in self.made if made == name), None)

    def changed_between(
        self, name: str, calls: Collection[Instant], since: Instant
    ) -> StateChange | None:
        """Return an assignment between two calls of a function.

        Args:
            name: the variable or attribute.
            calls: when the function is called.
            since: when the function was made: in a loop around it, each iteration makes a new one.
        """
        changes = [change for change in self.changes if change.name == name]
        values = {change.constant for change in changes}
        if len(values) == 1 and values != {""}:
            first = min(change.moment.number for change in changes)
            if "." not in name or all(call.number > first for call in calls):
                return None  # the same value each time
        for change in changes:
            now = change.moment
            if now.number < since.number or set(since.loops) & set(now.loops):
                continue
            before = any(call.may_precede(now) and call.number > since.number for call in calls)
            if before and any(now.may_precede(call) for call in calls):
                return change
        return None


def constant_of(value: ast.expr | None) -> str:
    """Return the source of a constant; nothing for other values."""
    return ast.unparse(value) if isinstance(value, ast.Constant) else ""


def joined(frames: Iterable[ScopeFrame]) -> ScopeFrame:
    """Return what a module does, from what its statements do."""
    calls: list[FrameCall] = []
    changes: list[StateChange] = []
    made: list[tuple[str, Instant]] = []
    for number, frame in enumerate(frames):
        first = number * _MOST
        calls += (replace(call, moment=_later(call.moment, first)) for call in frame.calls)
        changes += (replace(each, moment=_later(each.moment, first)) for each in frame.changes)
        made += ((name, _later(moment, first)) for name, moment in frame.made)
    return ScopeFrame(tuple(calls), tuple(changes), tuple(made))


_MOST = 1 << 32
"""More than what happens in one statement."""


def _later(moment: Instant, first: int) -> Instant:
    return Instant(
        moment.number + first,
        tuple(loop + first for loop in moment.loops),
        tuple((at + first, block) for at, block in moment.branches),
    )


def frame_of(body: Sequence[ast.stmt]) -> ScopeFrame:
    """Return what the statements of a scope do."""
    reader = _Reader()
    reader.block(body, (), ())
    return ScopeFrame(tuple(reader.calls), tuple(reader.changes), tuple(reader.made.items()))


class _Reader:
    def __init__(self) -> None:
        self.calls: list[FrameCall] = []
        self.changes: list[StateChange] = []
        self.made: dict[str, Instant] = {}
        self._number = 0

    def block(self, body: Sequence[ast.stmt], loops: _Loops, branches: _Branches) -> None:
        """Read statements in order."""
        for statement in body:
            self._statement(statement, loops, branches)

    def _moment(self, loops: _Loops, branches: _Branches) -> Instant:
        self._number += 1
        return Instant(self._number, loops, branches)

    def _statement(self, node: ast.stmt, loops: _Loops, branches: _Branches) -> None:
        if isinstance(node, FunctionNode | ast.ClassDef):
            self.made.setdefault(node.name, self._moment(loops, branches))
            return
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._number += 1
            loops = (*loops, self._number)
        for child in ast.iter_child_nodes(node):
            expression = child.context_expr if isinstance(child, ast.withitem) else child
            if isinstance(expression, ast.expr):
                self._evaluate(expression, loops, branches)
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case (
                ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target)
            ):
                targets = [target]
        constant = constant_of(value)
        for name, part in _assigned(targets):
            moment = self._moment(loops, branches)
            self.made.setdefault(name, moment)
            self.changes.append(StateChange(name, place_of(part), moment, constant))
        at = self._number
        for number, body in enumerate(blocks_of(node)):
            is_branch = isinstance(node, ast.If | ast.Match)
            self.block(body, loops, (*branches, (at, number)) if is_branch else branches)

    def _evaluate(self, node: ast.expr, loops: _Loops, branches: _Branches) -> None:
        for inner in reversed(list(evaluated(node))):
            if isinstance(inner, ast.Call):
                arguments: list[tuple[int | str, ast.expr]] = [*enumerate(inner.args)]
                arguments += [(word.arg, word.value) for word in inner.keywords if word.arg]
                names = tuple((at, dotted(value)) for at, value in arguments if dotted(value))
                moment = self._moment(loops, branches)
                fixed = arguments and all(isinstance(v, ast.Constant) for _, v in arguments)
                constants = ast.unparse(inner) if fixed else ""
                call = FrameCall(dotted(inner.func), names, constants, place_of(inner), moment)
                self.calls.append(call)


_Loops = tuple[int, ...]
_Branches = tuple[tuple[int, int], ...]


def _assigned(targets: Sequence[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    for target in targets:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                yield from _assigned(parts)
            case ast.Starred(value=inner):
                yield from _assigned([inner])
            case ast.Subscript(value=value) if dotted(value):
                yield dotted(value), target
            case ast.Name() | ast.Attribute() if dotted(target):
                yield dotted(target), target
