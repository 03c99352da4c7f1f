"""What jaxsight knew of a program before, beside what the device did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight.text import units

Record = dict[str, Any]

LONG_US = 20.0
"""Estimates of shorter programs are not compared: launching takes most of their time."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A program's figures, ahead of time and on the device, as they are in the JSON."""

    name: str
    ahead: Record
    device: Record

    @property
    def refused(self) -> str:
        """Why the program cannot be compared; empty if it can."""
        for where, record in (("ahead of time", self.ahead), ("on the device", self.device)):
            if "refused" in record:
                return f"{where}: {record['refused']}"
        return ""

    @property
    def has_kernels(self) -> bool:
        """Whether the number of kernels is that of the device, or within the range."""
        return _range(self.ahead, "kernels").has(self.device["kernels"])

    @property
    def has_launches(self) -> bool:
        """Whether the device's events are the launches, or within the range."""
        return _range(self.ahead, "launches").has(self.device["gpu_events"])

    @property
    def has_temp(self) -> bool:
        """Whether the device's temporaries are within the range."""
        return _range(self.ahead, "temp_bytes").has(self.device["temp_bytes"])

    @property
    def ratio(self) -> float | None:
        """The measured time divided by the estimate; `None` without an estimate."""
        estimate = self.ahead["estimate_us"]
        return self.device["device_us"] / estimate if estimate else None


def table(programs: Sequence[Compared]) -> str:
    """Return a line for each program; figures that differ are marked with `!`."""
    rows = [("program", "kernels", "launches", "temp", "≈ time", "measured", "ratio")]
    for each in programs:
        if each.refused:
            rows.append((each.name, each.refused[:100], "", "", "", "", ""))
            continue
        ahead, device, ratio = each.ahead, each.device, each.ratio
        rows.append(
            (
                each.name,
                _pair(_counts(ahead, "kernels"), str(device["kernels"]), each.has_kernels),
                _pair(_counts(ahead, "launches"), f"{device['gpu_events']:g}", each.has_launches),
                _pair(_temp(ahead), units.size(device["temp_bytes"]), each.has_temp),
                units.time(ahead["estimate_us"] / 1e6) if ahead["estimate_us"] else "",
                units.time(device["device_us"] / 1e6),
                f"{ratio:.2f}" if ratio is not None else "",
            )
        )
    widths = [max(len(row[column]) for row in rows if row[2]) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def totals(programs: Sequence[Compared]) -> str:
    """Return how many figures hold, a line for each kind."""
    compared = [each for each in programs if not each.refused]
    checks: dict[str, Callable[[Compared], bool]] = {
        "kernels": lambda each: each.has_kernels,
        "launches": lambda each: each.has_launches,
        "temporaries": lambda each: each.has_temp,
    }
    lines = [
        f"{sum(map(holds, compared))} of {len(compared)} {what}" for what, holds in checks.items()
    ]
    long = [each for each in compared if each.device["device_us"] > LONG_US]
    ratios = sorted(each.ratio for each in long if each.ratio is not None)
    within = [
        f"{sum(1 / factor <= ratio <= factor for ratio in ratios)} within {factor}x"
        for factor in (1.3, 2)
    ]
    lines.append(
        f"{len(ratios)} of {len(long)} programs above {LONG_US:g} µs have an estimate: "
        f"{', '.join(within)}"
    )
    if refused := len(programs) - len(compared):
        lines.append(f"{refused} cannot be compared")
    return "\n".join(lines)


def _pair(ahead: str, device: str, holds: bool) -> str:
    if ahead == device and holds:
        return ahead
    return f"{ahead} → {device}{'' if holds else ' !'}"


def _counts(ahead: Record, figure: str) -> str:
    known = _range(ahead, figure)
    if known.most is None:
        return f"≥ {known.least}"
    return f"{known.most}" if known.least == known.most else f"{known.least}–{known.most}"


def _temp(ahead: Record) -> str:
    known = _range(ahead, "temp_bytes")
    least = units.size(known.least)
    if known.most is None:
        return f"≥ {least}"
    return least if known.least == known.most else f"{least}–{units.size(known.most)}"


@dataclass(frozen=True, slots=True)
class _Range:
    """A figure's minimum and maximum; without a maximum if it is not known."""

    least: int
    most: int | None

    def has(self, figure: float) -> bool:
        return self.least <= figure and (self.most is None or figure <= self.most)


def _range(ahead: Record, figure: str) -> _Range:
    """Return the range of a figure, whose ends are the figure itself unless there are others."""
    exact = ahead[figure]
    least, most = ahead.get(f"{figure}_at_least", exact), ahead.get(f"{figure}_at_most", exact)
    return _Range(least, most)
