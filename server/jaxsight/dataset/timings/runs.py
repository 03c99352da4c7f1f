"""Runs a direction of a program, and returns what it took."""

from __future__ import annotations

import jax
import numpy as np

from jaxsight.dataset.program import Program, Record
from jaxsight.dataset.rows.compiling import devices_of
from jaxsight.dataset.rows.describe import Rejected, attempt, traced, versions
from jaxsight.dataset.rows.directions import Direction, backward
from jaxsight.measuring import timing
from jaxsight.measuring.programs import (
    MeasuredProgram,
    compile_program,
    default_device,
    run_alternately,
)
from jaxsight.wire.messages.measuring import MeasuringLimits


def time(program: Program, direction: str, seconds: float) -> Record:
    """Return the columns of the table of measured times that are known in this process.

    Args:
        program: that of a row, with its arguments.
        direction: `forward` or `backward`.
        seconds: the most time of timed runs; they end before if the median is known to 1 %.

    Raises:
        Rejected: it cannot be traced, compiled or run, or its times would say nothing.
    """
    _, found = traced(program)
    if direction == "backward":
        derivative = attempt("trace", lambda: backward(found))
        if derivative is None:
            raise Rejected("no derivative")
        found = derivative
    if found.has_kernels:
        raise Rejected("interpreted kernels", "Pallas kernels are interpreted on a CPU")
    measured = attempt("compile", lambda: _compiled(found.traced, found))
    devices = devices_of(measured.hlo)
    programs = [measured]
    if devices == 1:
        programs.append(attempt("compile", lambda: _compiled(_idle(found), found)))
    limits = MeasuringLimits(seconds=seconds)
    ran = attempt("run", lambda: run_alternately(programs, limits))
    spread, *idle = map(timing.spread, ran.samples)
    conditions = ran.conditions(default_device())
    return {
        "direction": direction,
        "cores": conditions.cores,
        "devices": devices,
        "warm_up_seconds": timing.WARM_UP,
        "runs": spread.runs,
        "median_seconds": spread.median,
        "quartile1_seconds": spread.quartile1,
        "quartile3_seconds": spread.quartile3,
        "low_seconds": spread.low,
        "high_seconds": spread.high,
        "least_seconds": spread.least,
        "first_seconds": ran.firsts[0],
        "compile_seconds": measured.compile_seconds,
        "overhead_seconds": idle[0].median if idle else None,
        "clock_seconds": conditions.clock_seconds,
        "governor": conditions.governor or None,
        "load": conditions.load if conditions.load >= 0 else None,
        "other_cores": conditions.others if conditions.others >= 0 else None,
        "is_quiet": not conditions.is_busy if conditions.others >= 0 else None,
        "versions": versions(),
        "x64": bool(jax.config.values["jax_enable_x64"]),
    }


def _compiled(traced: jax.stages.Traced, direction: Direction) -> MeasuredProgram:
    return compile_program(traced, (), direction.arguments, ())


def _idle(direction: Direction) -> jax.stages.Traced:
    """Trace a function with a direction's arguments and number of results that computes nothing."""
    count = len(direction.program.jaxpr.outvars)
    args, kwargs = jax.tree.unflatten(direction.traced.in_tree, direction.arguments)

    def idle(*_: object, **__: object) -> list[np.int32]:
        return [np.int32(at) for at in range(count)]

    return jax.jit(idle, keep_unused=True).trace(*args, **kwargs)
