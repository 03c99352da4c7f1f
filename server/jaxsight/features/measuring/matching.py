"""Measured times of a function's kernels, beside their estimates and at their lines.

A kernel in a profile has the name of an instruction of the optimized HLO, and so have the kernels
of the graph: both are made of the same program. A name that the graph does not have (a GPU may
autotune another program each time) is looked up in the HLO that was run, which has the same paths
of equations.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.compiler.hlo import read
from jaxsight.queries.memory import Measurement
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.targets.roofline import estimate, total
from jaxsight.wire.kernel_graph import Kernel


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A row: what a kernel, or something else on the device, took in one run."""

    name: str
    """The HLO's instruction."""
    index: int | None
    """The kernel's index in the graph; `None` if the graph has no kernel of this name."""
    calls: float
    seconds: float
    share: float
    """Its part of the time of all rows, from 0 to 1."""
    estimate_seconds: float | None
    lines: tuple[int, ...]
    """Lines of the file (from 1) that it computes, or else those that it feeds."""
    bytes_per_second: float | None
    """The bytes that it reads and writes, by its time; `None` if they are not known."""
    flops_per_second: float | None

    @property
    def ratio(self) -> float | None:
        """Measured by estimated time; `None` without an estimate."""
        return self.seconds / self.estimate_seconds if self.estimate_seconds else None


@dataclass(frozen=True)
class MatchedTimes:
    """The times of a function's kernels, the dearest first."""

    measurement: Measurement
    kernels: Kernels
    rows: tuple[MeasuredKernel, ...]

    @property
    def unmatched_seconds(self) -> float:
        """Device time of what is neither a kernel of the graph nor at a line."""
        return sum(row.seconds for row in self.rows if row.index is None and not row.lines)

    @functools.cached_property
    def estimate_seconds(self) -> float | None:
        """The estimate of one run; `None` if there is none, or only a lower bound."""
        found = total(self.kernels.graph, self.kernels.target)
        return None if found is None or found.is_lower_bound else found.seconds

    def row(self, kernel: int) -> MeasuredKernel | None:
        """Return the row of a kernel of the graph; `None` if the device did not report it."""
        return self._by_kernel.get(kernel)

    @functools.cached_property
    def _by_kernel(self) -> Mapping[int, MeasuredKernel]:
        return {row.index: row for row in self.rows if row.index is not None}

    @functools.cached_property
    def shares(self) -> Mapping[int, float]:
        """The share of device time of each line (from 1), from 0 to 1.

        The time of a kernel that computes several lines is divided evenly between them.
        """
        found: dict[int, float] = defaultdict(float)
        for row in self.rows:
            for line in row.lines:
                found[line] += row.share / len(row.lines)
        return found


def matched(kernels: Kernels, measurement: Measurement) -> MatchedTimes:
    """Return measured times beside a function's kernels on the same target."""
    return MatchedTimes(measurement, kernels, tuple(_rows(kernels, measurement)))


def _rows(kernels: Kernels, measurement: Measurement) -> Iterator[MeasuredKernel]:
    times = measurement.times
    indices = {kernel.name: index for index, kernel in enumerate(kernels.graph.kernels)}
    others: Mapping[str, Kernel] = {}
    if any(time.name not in indices for time in times.kernels):
        platform = measurement.target.platform
        others = {kernel.name: kernel for kernel in read(times.hlo, platform=platform).kernels}
    everything = sum(time.seconds for time in times.kernels)
    for time in times.kernels:
        index = indices.get(time.name)
        kernel = kernels.graph.kernels[index] if index is not None else others.get(time.name)
        share = time.seconds / everything if everything else 0.0
        if kernel is None:
            yield MeasuredKernel(
                time.name, None, time.calls, time.seconds, share, None, (), None, None
            )
            continue
        # Of a loop of unknown length, the profile knows how often it ran.
        is_known = all(kernels.graph.loops[loop].trips is not None for loop in kernel.loops)
        runs = kernel.runs if index is not None and is_known else max(1.0, time.calls)
        work = kernel.work
        moved = (work.read + work.written) * runs if work is not None else 0
        flops = kernel.flops * runs
        yield MeasuredKernel(
            time.name,
            index,
            time.calls,
            time.seconds,
            share,
            estimate(kernel, kernels.target) if index is not None and is_known else None,
            tuple(kernels.lines(kernel) or kernels.fed_lines(kernel)),
            moved / time.seconds if moved and time.seconds else None,
            flops / time.seconds if flops and time.seconds else None,
        )
