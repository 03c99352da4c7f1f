"""*Measure* in an editor: what a person is asked before, and what they are shown afterwards.

A measurement runs the user's function many times, so it only begins by a command of theirs, in a
folder whose code may run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jaxsight.features.measuring.measure import measured_function
from jaxsight.features.measuring.shown import ShownTimes
from jaxsight.queries.engine import Engine
from jaxsight.queries.measurements import MeasuringCancelled, NotMeasured
from jaxsight.targets.target import Target
from jaxsight.wire.messages.replies import Stage

MEASURE: Final = "jaxsight.measure"
CANCEL: Final = "cancel"
"""The argument of the command that cancels a measurement."""

_STAGES = {
    "execute": "running the module",
    "inputs": "making inputs",
    "trace": "tracing",
    "wait": "waiting for another measurement",
    "compile": "compiling",
    "measure": "running",
    "profile": "profiling",
}
"""What is being done, by the name of the stage."""


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """What would be measured, before the user has agreed."""

    path: str
    function: str
    root: str
    target: Target

    @property
    def question(self) -> str:
        """The question whether it may run."""
        return (
            f"Measure `{self.function}` on {self.target.title}? Functions of {self.root} then run "
            "many times with their example inputs"
        )


@dataclass(frozen=True, slots=True)
class AskedMeasurements:
    """Measures functions for the people of one session."""

    _engine: Engine

    async def plan(self, path: str, function: str) -> MeasurePlan:
        """Return what would be measured.

        Raises:
            LookupError: nothing can be; the message says why.
        """
        engine = self._engine
        target = engine.choices.target(path)
        try:
            engine.measurements.check(path, target)
        except NotMeasured as error:
            raise LookupError(f"{function} is not measured: {error}") from error
        await engine.documents.read(path)
        engine.documents.find(path, function)
        return MeasurePlan(path, function, engine.projects.of(path).root, target)

    async def run(self, plan: MeasurePlan, report: Callable[[str], None]) -> ShownTimes | None:
        """Measure a function, as the user agreed; return `None` if they cancelled it.

        Args:
            plan: what they agreed to.
            report: called with what is being done, in words.

        Raises:
            LookupError: it cannot be measured; the message says why.
        """
        engine = self._engine
        is_told = False

        def reached(stage: Stage) -> None:
            nonlocal is_told
            if not is_told:  # the lens offers to cancel it
                engine.waiting.refresh(plan.path)
                is_told = True
            report(stage.detail or _STAGES.get(stage.stage, stage.stage))

        try:
            times = await measured_function(
                engine, plan.path, plan.function, plan.target.name, on_stage=reached
            )
        except MeasuringCancelled:
            return None
        except NotMeasured as error:
            raise LookupError(f"{plan.function} is not measured: {error}") from error
        finally:
            engine.waiting.refresh(plan.path)
        return ShownTimes(engine, times.kernels.view, times.measurement, times.kernels, False)

    def cancel(self, path: str, function: str) -> bool:
        """Cancel the measurement of a function; return whether there was one."""
        return self._engine.measurements.cancel(path, function)
