"""Run traced functions on this machine's device: the answer to `Measure`.

This is the only handler that runs a user's program as it is, with its effects: the user asked for
it. Its process is for measurements alone, and ends when the user cancels, or past a limit.
"""

from __future__ import annotations

import functools

from jaxsight.measuring.programs import CannotMeasure, MeasuredProgram, compile_program, measured
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.failures import refusal
from jaxsight.tracer.job import Job, KeptTrace, under
from jaxsight.wire.messages.measuring import Measured
from jaxsight.wire.messages.requests import Measure


def measure(job: Job[Measure]) -> Measured:
    """Run one or two earlier traces, and return what they took.

    Raises:
        UserError: a trace is no longer kept, or (at stage `measure`) it cannot be run alone.
    """
    request = job.request
    kept = [job.traces.of(id) for id in (request.trace, request.other) if id]
    makes = [functools.partial(_compiled, trace) for trace in kept]
    with under(kept[0].settings):
        try:
            return measured(makes, request.limits, job.begin, request.id)
        except CannotMeasure as error:
            raise refusal("measure", str(error)) from error


def _compiled(trace: KeptTrace) -> MeasuredProgram:
    if trace.axes:
        named = " and ".join(f"`{axis}`" for axis in trace.axes)
        raise CannotMeasure(f"the program around it binds {named}, and runs it")
    stage = trace.stage
    located = lowering.located(stage)
    with lowering.no_lines(), under(trace.settings):
        return compile_program(
            located, lowering.names(stage), trace.values, lowering.donated(stage)
        )
