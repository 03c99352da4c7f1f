"""Measure a function that the user named, when they ask for it."""

from __future__ import annotations

from collections.abc import Callable

from jaxsight.features import named_function
from jaxsight.features.measuring.matching import MatchedTimes, matched
from jaxsight.queries.choices import named_target
from jaxsight.queries.engine import Engine
from jaxsight.queries.measurements import NotMeasured
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.measuring import MeasuringLimits
from jaxsight.wire.messages.replies import Stage


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
    chosen = named_target(target) if target else engine.measurements.target(path)
    engine.measurements.check(path, chosen)
    view, result = await named_function.compiled_function(engine, path, function, chosen.name)
    kernels = Kernels.of(view, result)
    if kernels is None:
        assert not isinstance(result.outcome, Compiled)
        raise NotMeasured(f"{function} cannot be compiled: {result.outcome.message}")
    measurement = await engine.measurements.measure(
        view, chosen, against=against, limits=limits, on_stage=on_stage
    )
    return matched(kernels, measurement)


def last(engine: Engine, kernels: Kernels) -> tuple[MatchedTimes, bool] | None:
    """Return the last measurement beside a function's kernels, and whether it is stale.

    `None` if there is none for the kernels' target, or not of their program.
    """
    found = engine.measurements.last(kernels.view, kernels.target)
    return None if found is None else (matched(kernels, found.measurement), found.stale)
