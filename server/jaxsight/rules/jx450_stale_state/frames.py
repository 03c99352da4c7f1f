"""The order in which a function or a module assigns variables and calls functions.

A variable is *changed between calls* if a call comes before an assignment and a call after it, in
the order of the text or in different iterations of a loop around both.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
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

    def may_precede(self, other: Instant) -> bool:
        """Whether it comes before another moment, in the text or in an iteration before."""
        if set(self.loops) & set(other.loops):
            return True
        taken = dict(self.branches)
        apart = any(taken.get(at, block) != block for at, block in other.branches)
        return self.number < other.number and not apart


@dataclass(frozen=True, slots=True)
class StateChange:
    """An assignment to a variable, or to an attribute or item of what it is bound to."""

    name: str
    """`rate`, `model.rate`; the container for an item."""
    place: Place
    moment: Instant
    constant: str
    """The source of a constant; empty for other values."""
    body: int
    """Which of the bodies it is in that the frame is of."""


@dataclass(frozen=True, slots=True)
class ScopeFrame:
    """What a scope does, in order."""

    calls: tuple[tuple[str, Instant], ...]
    """When functions are called, by their dotted names."""
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


def frame_of(*bodies: Sequence[ast.stmt]) -> ScopeFrame:
    """Return what the statements of a scope do: a function's body, or a module's statements."""
    order = _Order(AbstractState())
    for order.body, body in enumerate(bodies):
        order.run(body)
    return ScopeFrame(tuple(order.calls), tuple(order.changes), tuple(order.made.items()))


class _Order(AbstractInterpreter[AbstractState[None], None]):
    """Notes when things happen; their values do not matter."""

    ITERATIONS = 1  # `Instant` knows of the others

    calls: list[tuple[str, Instant]]
    changes: list[StateChange]
    made: dict[str, Instant]

    def __init__(self, state: AbstractState[None]) -> None:
        super().__init__(state)
        self.calls, self.changes, self.made, self.body = [], [], {}, 0
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
            constant = ast.unparse(source) if isinstance(source, ast.Constant) else ""
            self.changes.append(StateChange(name, place_of(target), now, constant, self.body))

    def expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Lambda):
            return
        self.parts(node)
        if isinstance(node, ast.Call):
            self.calls.append((dotted(node.func), self._now()))
