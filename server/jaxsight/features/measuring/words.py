"""Words about measured times, for hints, hovers, the panel and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.queries.memory import Measurement
from jaxsight.targets.target import CPU
from jaxsight.text import units
from jaxsight.wire.messages.measuring import BUSY, Conditions, MeasuredRatio, ProgramTimes
from jaxsight.wire.messages.replies import Stage

HOST_BOUND = 0.5
"""The share of the wall time in which no kernel runs from which a program is said to wait for the
host, a choice: then faster kernels would change less than half of it."""
_NOTABLE = 0.05
"""The share of the wall time from which time without kernels is said."""
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
_SLOW_GOVERNORS = ("powersave", "conservative", "ondemand")
"""Governors under which a CPU's frequency follows its load (the kernel's `cpufreq`). With Intel's
driver, `powersave` does so, too."""


def step(stage: Stage) -> str:
    """Return what is being done: `tracing`, or the statement of the module that is executed."""
    return stage.detail or _STAGES.get(stage.stage, stage.stage)


def wall(measurement: Measurement) -> str:
    """Return `412 µs`: the median of the wall time."""
    return units.time(measurement.times.wall.median)


def headline(times: ProgramTimes) -> str:
    """Return `412 µs (quartiles 409 µs–418 µs, 310 runs)`."""
    wall, runs = times.wall, units.count(times.wall.runs, "run")
    if wall.runs == 1:
        return f"{units.time(wall.median)} (1 run)"
    quartiles = f"{units.time(wall.quartile1)}–{units.time(wall.quartile3)}"
    return f"{units.time(wall.median)} (quartiles {quartiles}, {runs})"


def facts(measurement: Measurement) -> list[str]:
    """Return lines about how it was measured and what may disturb, for a hover or a terminal."""
    times, conditions = measurement.times, measurement.conditions
    made = _made(times, measurement.trace_seconds)
    return [*_device(times), *made, *_disturbed(conditions, measurement.target.platform)]


def compared(ratio: MeasuredRatio, first: str, second: str) -> str:
    """Return how long two functions take: `fast takes 0.52 times as long as slow (0.50–0.54)`.

    Args:
        ratio: of the second function to the first.
        first: the name of the first function.
        second: the name of the second.
    """
    times, ends = _figure(1 / ratio.ratio), (_figure(1 / ratio.high), _figure(1 / ratio.low))
    interval = f"95 % interval {ends[0]}–{ends[1]}"
    if ratio.low <= 1 <= ratio.high:
        return f"no difference found between {first} and {second}: ratio {times} ({interval})"
    return f"{first} takes {times} times as long as {second} ({interval})"


def _figure(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 10 else f"{ratio:.0f}"


def _device(times: ProgramTimes) -> Iterator[str]:
    if times.profile_problem:
        yield f"no times of kernels: {times.profile_problem}"
        return
    median = times.wall.median
    busy = f"device busy for {units.time(times.device_seconds)} of {units.time(median)}"
    idle = 1 - times.device_seconds / median if median else 0.0
    if times.profile_note:
        yield times.profile_note
    elif idle >= HOST_BOUND:
        yield f"{busy}: it mostly waits for the host"
    elif idle < _NOTABLE:  # runs that are profiled take longer than those that are timed
        yield "device busy all the time"
    else:
        yield busy
    if times.between_seconds >= _NOTABLE * median:
        yield f"between kernels: {units.time(times.between_seconds)}"
    for transfer in times.transfers:
        calls = units.count(round(transfer.calls), "time")
        yield f"{transfer.name}: {units.time(transfer.seconds)}, {calls}"


def _made(times: ProgramTimes, traced: float | None) -> Iterator[str]:
    stages = [f"trace {units.seconds(traced)}"] if traced is not None else []
    stages.append(f"lower {units.seconds(times.lower_seconds)}")
    yield " · ".join([*stages, f"XLA {units.seconds(times.compile_seconds)}"])
    if times.peak_bytes >= 0:
        yield f"peak memory of the device {units.size(times.peak_bytes)}"
    if times.drawn:
        yield f"random arguments: {units.some(times.drawn, 4)}"


def _disturbed(conditions: Conditions, platform: str) -> Iterator[str]:
    if conditions.is_busy:
        busy = f"other processes kept {conditions.others:.1f} of {conditions.cores} cores busy"
        yield f"{busy}: times may be longer than on an idle machine"
    elif conditions.others < 0 and conditions.load > BUSY * conditions.cores:
        yield f"load {conditions.load:.1f} before: times may be longer than on an idle machine"
    if platform == CPU and conditions.governor in _SLOW_GOVERNORS:
        yield f"the CPU's frequency varies (governor {conditions.governor})"
    if conditions.command_buffers:
        yield "kernels were profiled without command buffers, which the timed runs have"
