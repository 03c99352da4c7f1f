"""Measured times of a function's kernels, beside their estimates and at their lines."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.queries.memory import Measurement
from jaxsight.queries.programs.kernels import Kernels


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A row: what a kernel, or something else on the device, took in one run."""

    name: str
    """The HLO's instruction."""
    index: int | None
    """The kernel's index in the graph; `None` if the device ran what no kernel has the name of."""
    calls: float
    seconds: float
    share: float
    """Its part of the time of all rows, from 0 to 1."""
    estimate_seconds: float | None
    lines: tuple[int, ...]
    """Lines of the file (from 1) that it computes, or else those that it feeds."""
    bytes_per_second: float | None
    """The bytes that it reads and writes, by its time."""
    flops_per_second: float | None

    @property
    def ratio(self) -> float | None:
        """Measured by estimated time; `None` without an estimate."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MatchedTimes:
    """The times of a function's kernels, the dearest first."""

    measurement: Measurement
    kernels: Kernels
    rows: tuple[MeasuredKernel, ...]

    @property
    def unmatched_seconds(self) -> float:
        """Device time of what is no kernel of the graph."""
        raise NotImplementedError

    @property
    def estimate_seconds(self) -> float | None:
        """The estimate of one run of the program."""
        raise NotImplementedError

    def row(self, kernel: int) -> MeasuredKernel | None:
        """Return the row of a kernel of the graph; `None` if the device did not report it."""
        raise NotImplementedError

    def shares(self) -> dict[int, float]:
        """Return the share of device time of each line (from 1), from 0 to 1.

        The time of a kernel that computes several lines is divided evenly between them.
        """
        raise NotImplementedError


def matched(kernels: Kernels, measurement: Measurement) -> MatchedTimes:
    """Return measured times beside a function's kernels on the same target."""
    raise NotImplementedError
