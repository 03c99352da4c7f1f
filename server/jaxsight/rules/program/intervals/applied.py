"""An equation of known numbers, as the functions see it that say what primitives make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.interval import Interval
from jaxsight.wire.program import Step, Value


@dataclass(frozen=True, slots=True)
class Applied:
    """An equation, and what is known of the values of its program."""

    step: Step
    flow: Flow
    of: Callable[[int], Interval]
    """Returns the interval of a value."""

    @property
    def before(self) -> Value:
        """The first operand."""
        return self.flow.value(self.step.operands[0])

    @property
    def after(self) -> Value:
        """The result."""
        return self.flow.value(self.step.results[0])

    @property
    def is_full(self) -> bool:
        """Whether a reduction is over all axes."""
        return self.after.shape == ()

    def is_listed(self, interval: Interval) -> bool:
        """Whether all elements of the first operand are known, one for each place."""
        return interval.integers is not None and len(interval.integers) == self.before.elements


Transfer = Callable[..., Interval | None]
"""Returns the interval of an equation's result of those of its operands; `None` where nothing is
known.
"""
TRANSFERS: dict[str, Transfer] = {}
"""By primitive."""


def transfers(*primitives: str) -> Callable[[Transfer], Transfer]:
    """Register what primitives make of the intervals of their operands, which are all known."""

    def register(transfer: Transfer) -> Transfer:
        TRANSFERS.update(dict.fromkeys(primitives, transfer))
        return transfer

    return register


def computes(function: Transfer, *primitives: str) -> None:
    """Register a function of the intervals of the operands alone."""
    transfers(*primitives)(lambda applied, *operands: function(*operands))
