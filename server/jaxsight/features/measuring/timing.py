"""What an editor shows of a function's last measurement, beside its kernels.

A measurement of an older text is shown with the mark of stale figures, and its kernels are those of
that text: the times of one program never stand beside the kernels of another.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from jaxsight.features import caveats
from jaxsight.figures.program_notes import stages
from jaxsight.figures.record import fields
from jaxsight.figures.summary import estimated_time
from jaxsight.queries.engine import Engine
from jaxsight.queries.memory import Measurement
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.achieved import MeasuredKernel, measured_kernels
from jaxsight.targets.roofline import total
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.wire.kernel_graph import Kernel
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
    yield stages(traced, times.lower_seconds, units.seconds(times.compile_seconds))
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


# Measured times of a function's kernels, beside their estimates and at their lines.


@dataclass(frozen=True)
class MatchedTimes:
    """The times of a function's kernels, the dearest first."""

    measurement: Measurement
    kernels: LocatedFigures
    rows: tuple[MeasuredKernel[int], ...]

    @property
    def unmatched_seconds(self) -> float:
        """Device time of what is neither a kernel of the graph nor at a line."""
        return sum(row.seconds for row in self.rows if row.index is None and not row.lines)

    @functools.cached_property
    def estimate_seconds(self) -> float | None:
        """The estimate of one run; `None` if there is none, or only a lower bound."""
        found = total(self.kernels.graph, self.kernels.target)
        return None if found is None or found.is_lower_bound else found.seconds

    @functools.cached_property
    def by_kernel(self) -> Mapping[int, MeasuredKernel[int]]:
        """The rows of the kernels of the graph that the device reported, by their index."""
        return {row.index: row for row in self.rows if row.index is not None}

    @functools.cached_property
    def shares(self) -> Mapping[int, float]:
        """The share of device time of each line (from 1) that is worth showing, from 0 to 1.

        The time of a kernel that computes several lines is divided evenly between them.
        """
        found: dict[int, float] = defaultdict(float)
        for row in self.rows:
            for line in row.lines:
                found[line] += row.share / len(row.lines)
        return {line: share for line, share in found.items() if share >= _LEAST_SHARE}


def matched(kernels: LocatedFigures, measurement: Measurement) -> MatchedTimes:
    """Return measured times beside a function's kernels on the same target."""
    from jaxsight.compiler.hlo import read  # 1 MiB, which a server without measurements saves

    times, target = measurement.times, measurement.target

    def lines(kernel: Kernel) -> list[int]:
        return kernels.lines(kernel) or kernels.fed_lines(kernel)

    # The HLO that was run has the same paths of equations.
    others = functools.partial(read, times.hlo, platform=target.platform)
    rows = measured_kernels(kernels.graph, times.kernels, kernels.target, lines, others)
    return MatchedTimes(measurement, kernels, tuple(rows))


_OLDER = "measured before the last edits"
_LEAST_SHARE = 0.01
"""The smallest share of a line that is shown, a choice: it would be 0 %."""


@dataclass(frozen=True, slots=True)
class LastTimes:
    """The last measurement of a function on a target.

    `kernels` are the function's kernels now, if they are known; `stale` says that another program
    was measured.
    """

    engine: Engine
    view: View
    measurement: Measurement
    kernels: LocatedFigures | None
    stale: bool

    @property
    def figure(self) -> str:
        """`412 µs`, or `~412 µs` of an older text, unless all of the view has that mark."""
        mark = caveats.STALE if self.stale and not self.view.stale else ""
        return f"{mark}{wall(self.measurement)}"

    @property
    def headline(self) -> str:
        """`412 µs measured (≈ 380)`, with the estimate of the same program."""
        estimate = f" ({self.estimate})" if self.estimate else ""
        return f"{self.figure} measured{estimate}"

    @property
    def estimate(self) -> str:
        """`≈ 380`, or `≈ 1.2 ms` if its unit is another one; empty without an estimate."""
        if self.stale or self.kernels is None:
            return ""
        text = estimated_time(self.kernels.graph, self.kernels.target)
        return text.removesuffix(_unit(self.figure))

    @property
    def facts(self) -> list[str]:
        """Lines about how it was measured, the first of which says if it is of an older text."""
        lines = [headline(self.measurement.times), *facts(self.measurement)]
        return [_OLDER, *lines] if self.stale else lines

    @property
    def matched(self) -> MatchedTimes | None:
        """The times of the kernels that are shown; `None` if those are not what was measured."""
        if self.stale or self.kernels is None:
            return None
        return matched(self.kernels, self.measurement)

    @property
    def at_lines(self) -> MatchedTimes | None:
        """The times of the kernels that were measured, at their places in the current text."""
        if not self.stale:
            return self.matched
        then = self.engine.programs.kernels_then(
            self.view, self.measurement.answer, self.measurement.target
        )
        return matched(then, self.measurement) if then is not None else None


def last_times(
    engine: Engine, view: View, target: Target, kernels: Compilation | None
) -> LastTimes | None:
    """Return what is known of a function on a target; `None` if it was not measured.

    Args:
        engine: the engine.
        view: the function.
        target: the target.
        kernels: its kernels on that target, which may be those of an older text.
    """
    if (last := engine.measurements.last(view, target)) is None:
        return None
    if not isinstance(kernels, LocatedFigures) or kernels.view.answer.key != view.answer.key:
        kernels = None
    measurement, _ = last
    return LastTimes(engine, view, measurement, kernels, measurement.answer.key != view.answer.key)


def row_words(times: MatchedTimes, row: MeasuredKernel[int]) -> str:
    """Return one kernel's times in a clause: `kernel 2, fft × 7: 120 µs (≈ 100, 1.2×), 38 %`.

    Whoever reads its share at one of several lines is told how many have a part of it.
    """
    graph = times.kernels.graph
    name = row.name
    if row.index is not None:
        name = f"kernel {row.index + 1}, {graph.kernels[row.index].title}"
    calls = f" × {row.calls:g}" if row.calls != 1 else ""
    took = f"{seconds_words(row.seconds, row.estimate_seconds)}, {units.percent(row.share)}"
    of = f" of {len(row.lines)} lines" if len(row.lines) > 1 else ""
    return f"{name}{calls}: {took}{of}"


def expression_times(times: MatchedTimes, kernels: Iterable[int]) -> str:
    """Return `its kernel took 120 µs (≈ 100, 1.2×), 38 % of the device's time`.

    Empty if nothing was measured of them.

    Args:
        times: of the function.
        kernels: those that compute an expression, with whatever else they compute.
    """
    if not (rows := [row for index in kernels if (row := times.by_kernel.get(index)) is not None]):
        return ""
    estimates = [row.estimate_seconds for row in rows if row.estimate_seconds is not None]
    estimate = sum(estimates) if len(estimates) == len(rows) else None
    took = seconds_words(sum(row.seconds for row in rows), estimate)
    part = units.percent(sum(row.share for row in rows))
    whose = "its kernel" if len(rows) == 1 else f"its {len(rows)} kernels"
    return f"{whose} took {took}, {part} of the device's time"


def seconds_words(seconds: float, estimate: float | None) -> str:
    """Return `120 µs (≈ 100, 1.2×)`: a measured time, its estimate, and their ratio."""
    text = units.time(seconds)
    if estimate is None:
        return text
    ratio = f", {seconds / estimate:.2g}×" if estimate >= units.SHORTEST else ""
    return f"{text} ({units.about(estimate).removesuffix(_unit(text))}{ratio})"


def kernel_rows(times: MatchedTimes, most: int) -> Sequence[str]:
    """Return the dearest kernels in words, and how many there are more."""
    rows = [row_words(times, row) for row in times.rows[:most]]
    more = len(times.rows) - len(rows)
    return [*rows, *([f"and {more} more"] if more > 0 else [])]


def _unit(text: str) -> str:
    """Return the unit of a time with the space before it: ` µs`."""
    return f" {text.rpartition(' ')[2]}"


# A measurement as JSON, for the command line and for clients.


def record(found: MatchedTimes, function: str) -> dict[str, object]:
    """Return all figures of a measurement as JSON.

    Times are in seconds of one run, `kernels` the dearest first. `estimate_seconds` is a roofline
    estimate. What the device ran besides the kernels of the graph has `kernel` `null`.
    """
    measurement, conditions = found.measurement, found.measurement.conditions
    return {
        "function": function,
        "target": measurement.target.name,
        **times_record(measurement.times),
        "estimate_seconds": found.estimate_seconds,
        "trace_seconds": measurement.trace_seconds,
        "kernel_count": found.kernels.graph.kernel_count,
        "kernels": [
            {
                "name": row.name,
                "kernel": row.index,
                **fields(row, "calls seconds share estimate_seconds ratio lines"),
                **fields(row, "bytes_per_second flops_per_second"),
                **fields(row, "arithmetic_share bandwidth_share"),
            }
            for row in found.rows
        ],
        "unmatched_seconds": found.unmatched_seconds,
        "device": {"kind": conditions.device_kind, "platform": conditions.platform},
        **fields(conditions, "jax jaxlib"),
        "noise": {
            "cores": conditions.cores,
            "load": _known(conditions.load),
            "other_cores": _known(conditions.others),
            "busy": conditions.is_busy,
            "governor": conditions.governor or None,
            **fields(conditions, "clock_seconds waited_seconds"),
        },
        "command_buffers": conditions.command_buffers,
    }


def times_record(times: ProgramTimes) -> dict[str, object]:
    """Return the times of a program as JSON, without its kernels."""
    wall = times.wall
    return {
        "wall_seconds": wall.median,
        "wall_seconds_quartiles": [wall.quartile1, wall.quartile3],
        "wall_seconds_interval": [wall.low, wall.high],
        "wall_seconds_least": wall.least,
        "runs": wall.runs,
        "first_seconds": times.first_seconds,
        "device_seconds": _known(times.device_seconds),
        "host_seconds_between_kernels": _known(times.between_seconds),
        "host_seconds_around_kernels": _known(times.host_seconds),
        "transfers": list(map(asdict, times.transfers)),
        "profiled_runs": times.profiled_runs,
        "profile_problem": times.profile_problem or None,
        "lower_seconds": times.lower_seconds,
        "compile_seconds": times.compile_seconds,
        "peak_bytes": None if times.peak_bytes < 0 else times.peak_bytes,
        "random_arguments": list(times.drawn),
    }


def _known(seconds: float) -> float | None:
    return None if seconds < 0 else seconds
