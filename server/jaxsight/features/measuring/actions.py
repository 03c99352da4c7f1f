"""*Measure* in an editor: what a person is asked before, and what they are shown afterwards.

A measurement runs the user's function many times, so it only begins by a command of theirs, in a
folder whose code may run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jaxsight.features import named_function
from jaxsight.features.measuring import timing
from jaxsight.features.measuring.timing import LastTimes, MatchedTimes, matched
from jaxsight.queries.engine import Engine
from jaxsight.queries.measurements import MeasuringCancelled, NotMeasured
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.target import Target, parse
from jaxsight.wire.messages.measuring import MeasuringLimits
from jaxsight.wire.messages.replies import Stage

# Measure a function that the user named, when they ask for it.


async def measured_function(
    engine: Engine,
    path: str,
    function: str,
    target: str | None = None,
    *,
    against: View | None = None,
    limits: MeasuringLimits | None = None,
    on_stage: Callable[[Stage], None] = lambda stage: None,
) -> MatchedTimes:
    """Run a function on this machine, and return its times beside its kernels.

    It is compiled first, as a compile at the same time would disturb.

    Args:
        engine: the engine.
        path: an open document.
        function: the function's qualified name.
        target: the target's name; by default the first target if it is here, else the CPU.
        against: another function of the same project, whose runs alternate with its own.
        limits: what ends the runs.
        on_stage: called with each stage of the measurement.

    Raises:
        LookupError: no such function or target, or it is not traced.
        NotMeasured: the target is not here, code may not run, it fails, or the user cancelled it.
    """
    chosen = parse(target) if target else engine.measurements.target(path)
    engine.measurements.check(path, chosen)
    view, result = await named_function.compiled_function(engine, path, function, chosen.name)
    if isinstance(result, Refused):
        raise NotMeasured(f"{function} cannot be compiled: {result.trouble.message}")
    measurement = await engine.measurements.measure(
        view, chosen, against=against, limits=limits, on_stage=on_stage
    )
    return matched(result, measurement)


MEASURE: Final = "jaxsight.measure"
CANCEL: Final = "cancel"
"""The argument of the command that cancels a measurement."""


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """What would be measured, before the user has agreed."""

    path: str
    function: str
    root: str
    target: Target

    @property
    def prompt(self) -> str:
        """The question whether it may run."""
        return (
            f"Measure `{self.function}` on {self.target.title}? Functions of {self.root} then run "
            "many times with their example inputs"
        )


@dataclass(frozen=True, slots=True)
class MeasureActions:
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

    async def run(self, plan: MeasurePlan, report: Callable[[str], None]) -> LastTimes | None:
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
            report(timing.step(stage))

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
        return LastTimes(engine, times.kernels.view, times.measurement, times.kernels, False)

    def cancel(self, path: str, function: str) -> bool:
        """Cancel the measurement of a function; return whether there was one."""
        return self._engine.measurements.cancel(path, function)
