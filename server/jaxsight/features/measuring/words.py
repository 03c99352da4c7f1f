"""Words about measured times, for hints, hovers, the panel and the terminal."""

from __future__ import annotations

from jaxsight.queries.measurements import Measurement


def wall(measurement: Measurement) -> str:
    """Return `412 µs`: the median of the wall time."""
    raise NotImplementedError


def facts(measurement: Measurement) -> list[str]:
    """Return lines about how it was measured and what may disturb, for a hover or a terminal.

    Such as `median of 412 runs, quartiles 409–418 µs`, `time between kernels: 12 µs (3 %)`,
    `other processes kept 1.3 of 2 cores busy: times may be too long`.
    """
    raise NotImplementedError
