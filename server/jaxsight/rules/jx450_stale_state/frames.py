"""The order in which a function or a module assigns variables and calls functions.

A variable is *changed between calls* if a call comes before an assignment and a call after it, in
the order of the text or in different iterations of a loop around both.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from jaxsight.rules.text.expressions import Place, dotted, place_of
from jaxsight.source.abstract_interpretation.interpreter import (
    AbstractInterpreter,
    AbstractState,
    Loop,
)

T = TypeVar("T")


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

    def bound_at(self, name: str) -> Instant | None:
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
    order = _Order(AbstractState())
    order.run(body)
    return ScopeFrame(tuple(order.calls), tuple(order.changes), tuple(order.made.items()))


class _Order(AbstractInterpreter[AbstractState[None], None]):
    """Notes when things happen; their values do not matter."""

    ITERATIONS = 1  # `Instant` knows of the others

    calls: list[FrameCall]
    changes: list[StateChange]
    made: dict[str, Instant]

    def __init__(self, state: AbstractState[None]) -> None:
        super().__init__(state)
        self.calls, self.changes, self.made = [], [], {}
        self._number = 0
        self._loops: tuple[int, ...] = ()
        self._branches: tuple[tuple[int, int], ...] = ()

    def _now(self) -> Instant:
        self._number += 1
        return Instant(self._number, self._loops, self._branches)

    def repeat(self, node: Loop) -> None:
        before, self._loops = self._loops, (*self._loops, self._now().number)
        super().repeat(node)
        self._loops = before

    def branch(self, *ways: Callable[[], T]) -> list[T]:
        before, at = self._branches, self._now().number

        def inside(number: int, way: Callable[[], T]) -> T:
            self._branches = (*before, (at, number))
            return way()

        found = super().branch(*(partial(inside, *each) for each in enumerate(ways)))
        self._branches = before
        return found

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.made.setdefault(node.name, self._now())

    def either(self, _values: Sequence[None]) -> None:
        pass

    def assign(self, target: ast.expr, _value: None, source: ast.expr | None) -> None:
        name = dotted(target.value if isinstance(target, ast.Subscript) else target)
        if name:
            now = self._now()
            self.made.setdefault(name, now)
            self.changes.append(StateChange(name, place_of(target), now, constant_of(source)))

    def expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Lambda):
            return
        self.parts(node)
        if isinstance(node, ast.Call):
            arguments: list[tuple[int | str, ast.expr]] = [*enumerate(node.args)]
            arguments += [(word.arg, word.value) for word in node.keywords if word.arg]
            names = tuple((at, dotted(value)) for at, value in arguments if dotted(value))
            fixed = arguments and all(isinstance(v, ast.Constant) for _, v in arguments)
            constants = ast.unparse(node) if fixed else ""
            call = FrameCall(dotted(node.func), names, constants, place_of(node), self._now())
            self.calls.append(call)
