"""Measured times of functions, by what was measured: run only when the user asks, one at a time.

A measurement runs the user's function, so nothing here starts by itself: only `Measurements.measure`
runs something, and it is called by a command of the user. It has a tracer process of its own, whose
end is how it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.targets.target import Target
from jaxsight.wire.messages.measuring import (
    Conditions,
    Measured,
    MeasuringLimits,
    ProgramTimes,
)
from jaxsight.wire.messages.replies import Stage


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a function took on a target.

    `answer` is the trace that was measured: that of a view with the same `answer.key` is current.
    """

    answer: Answer
    target: Target
    measured: Measured

    @property
    def times(self) -> ProgramTimes:
        """The times of the function."""
        return self.measured.program

    @property
    def conditions(self) -> Conditions:
        """The machine while it measured."""
        return self.measured.conditions


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Why a function was not measured, in a clause for users."""

    reason: str
    is_cancelled: bool = False
    """Whether the user cancelled it; then nothing is said."""


@dataclass(frozen=True, slots=True)
class LastMeasurement:
    """The last measurement of a function on a target.

    `stale`: the function, or what it depends on, has changed since, or the target has.
    """

    measurement: Measurement
    stale: bool


class Measurements:
    """The measurements of a session: `Engine.measurements`."""

    def last(self, view: View, target: Target | None = None) -> LastMeasurement | None:
        """Return the last measurement of a function, which may be stale; measure nothing.

        Args:
            view: the function.
            target: the target, by default the first.
        """
        raise NotImplementedError

    def is_running(self, path: str, function: str) -> bool:
        """Return whether a function is being measured, or waits for its turn."""
        raise NotImplementedError

    async def measure(
        self,
        view: View,
        target: Target | None = None,
        *,
        against: View | None = None,
        limits: MeasuringLimits | None = None,
        on_stage: Callable[[Stage], None] | None = None,
    ) -> Measurement | NotMeasured:
        """Run a function and return what it took; the user must have asked for it.

        It waits for other measurements of this machine. Cancelling the caller cancels it.

        Args:
            view: the function.
            target: a target that is this machine's own device, by default the first target.
            against: another function, whose runs alternate with those of the first.
            limits: what ends the runs; by default those of the settings.
            on_stage: called with each stage: `execute`, `inputs`, `trace`, `wait`, `compile`,
                `measure` and `profile`; `detail` is for users.
        """
        raise NotImplementedError

    def cancel(self, path: str, function: str = "") -> bool:
        """Cancel the measurements of a file, or of one function; return whether there was one.

        The process that runs them ends at once.
        """
        raise NotImplementedError

    def close(self, path: str) -> None:
        """Cancel what measures a file that was closed."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Cancel everything and end all processes."""
        raise NotImplementedError
