"""What a figure is: samples of ours and of a baseline, taken in turn, and the goal that compares
their medians.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """At most `factor` times the baseline's median, and `slack` more, at this percentile of
    ours.
    """

    slack: float = 0.0
    factor: float = 0.0
    percentile: int = 50

    def limit(self, baseline: Sequence[float]) -> float:
        """The bound, in the figure's unit."""
        return self.factor * statistics.median(baseline) + self.slack if self.factor else self.slack

    def words(self, unit: str) -> str:
        """`p95 ≤ 10 ms`, `≤ 1.3× + 10 ms`."""
        parts = [f"{self.factor:g}×"] * bool(self.factor) + [f"{self.slack:g} {unit}"] * bool(
            self.slack
        )
        at = f"p{self.percentile} " if self.percentile != 50 else ""
        return f"{at}≤ {' + '.join(parts) or '0'}"


@dataclass(frozen=True, slots=True)
class Figure:
    """`ours` and `baseline` are samples in `unit`.

    A figure without goals is there to compare with.
    """

    name: str
    unit: str
    ours: Sequence[float]
    baseline: Sequence[float] = ()
    baseline_name: str = ""
    goals: Sequence[Goal] = ()

    def met(self, goal: Goal) -> bool:
        """Whether ours is within the goal's limit."""
        return percentile(self.ours, goal.percentile) <= goal.limit(self.baseline)

    @property
    def ratio(self) -> float | None:
        """Median by median; `None` without a baseline, and for one below the clock's unit."""
        if not self.baseline or not statistics.median(self.baseline):
            return None
        return statistics.median(self.ours) / statistics.median(self.baseline)

    def data(self) -> dict[str, Any]:
        """The figure for JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": _summary(self.ours),
            "baseline": _summary(self.baseline),
            "baseline_name": self.baseline_name,
            "ratio": self.ratio,
            "goals": [
                {
                    "goal": goal.words(self.unit),
                    "limit": goal.limit(self.baseline),
                    "met": self.met(goal),
                }
                for goal in self.goals
            ],
        }


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that so many percent do not exceed; the median for 50."""
    if percent == 50:
        return statistics.median(samples)
    ordered = sorted(samples)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def _summary(samples: Sequence[float]) -> dict[str, Any] | None:
    if not samples:
        return None
    named = {f"p{percent}": percentile(samples, percent) for percent in (5, 25, 50, 75, 95)}
    return {"count": len(samples), **named, "samples": list(samples)}


def table(figures: Sequence[Figure], remarks: Mapping[str, str]) -> str:
    """The figures as a Markdown table: medians, with the middle half of the samples in brackets.

    `remarks` are for the last column, by the figures' names.
    """
    rows = [("figure", "jaxsight", "baseline", "ratio", "goal", "")]
    for figure in figures:
        baseline = (
            f"{_spread(figure.baseline, figure.unit)} {figure.baseline_name}"
            if figure.baseline
            else ""
        )
        ours = _spread(figure.ours, figure.unit)
        if any(goal.percentile != 50 for goal in figure.goals):
            ours += f", p95 {percentile(figure.ours, 95):.{_digits(figure.ours)}f}"
        ratio = f"{figure.ratio:.2f}×" if figure.ratio is not None else ""
        goals = ", ".join(goal.words(figure.unit) for goal in figure.goals)
        met = ", ".join("met" if figure.met(goal) else "MISSED" for goal in figure.goals)
        last = ", ".join(filter(None, (met, remarks.get(figure.name))))
        rows.append((figure.name, ours, baseline, ratio, goals, last))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _spread(samples: Sequence[float], unit: str) -> str:
    low, middle, high = (percentile(samples, percent) for percent in (25, 50, 75))
    digits = _digits(samples)
    if len(samples) == 1:
        return f"{middle:.{digits}f} {unit}"
    return f"{middle:.{digits}f} {unit} [{low:.{digits}f}–{high:.{digits}f}]"


def _digits(samples: Sequence[float]) -> int:
    """Digits after the point: enough for three in all."""
    return max(0, 2 - math.floor(math.log10(max(statistics.median(samples), 0.01))))
