"""Measured times of a function's kernels, beside their estimates and at their lines."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.queries.memory import Measurement
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.targets.achieved import MeasuredKernel, measured_kernels
from jaxsight.targets.roofline import total
from jaxsight.wire.kernel_graph import Kernel


@dataclass(frozen=True)
class MatchedTimes:
    """The times of a function's kernels, the dearest first."""

    measurement: Measurement
    kernels: Kernels
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
    from jaxsight.compiler.hlo import read  # 1 MiB, which a server without measurements saves

    times, target = measurement.times, measurement.target

    def lines(kernel: Kernel) -> list[int]:
        return kernels.lines(kernel) or kernels.fed_lines(kernel)

    # The HLO that was run has the same paths of equations.
    others = functools.partial(read, times.hlo, platform=target.platform)
    rows = measured_kernels(kernels.graph, times.kernels, kernels.target, lines, others)
    return MatchedTimes(measurement, kernels, tuple(rows))
