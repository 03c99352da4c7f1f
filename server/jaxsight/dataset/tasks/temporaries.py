"""The task `temporaries`: how much memory XLA takes for temporaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.dataset.program import Record
from jaxsight.dataset.tasks.task import TaskGrade, TaskItem, of_target

_NEAR = 0.1
"""The relative error within which a prediction is right, a choice: alignment of buffers to 64 bytes
changes small programs by about as much."""


@dataclass(frozen=True, slots=True)
class TemporariesTask:
    """Predict the bytes of temporaries on a target."""

    target: str
    columns = ("source_code", "function", "stablehlo", "targets")
    scores = ("within_10_percent", "exact")
    predicts_programs = False

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the question about a row; none if its temporaries are not known."""
        figures = of_target(row, self.target)
        if figures is None or figures["temp_bytes"] is None:
            return []
        shown = {name: row[name] for name in ("source_code", "function", "stablehlo")}
        return [TaskItem("", {**shown, "target": self.target}, figures["temp_bytes"])]

    def problem(self, prediction: object) -> str:
        """Return what is expected: bytes."""
        is_number = type(prediction) in (int, float)
        is_fine = is_number and 0 <= prediction <= 1 << 60  # type: ignore[operator]
        return "" if is_fine else "expected a number of bytes"

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare the bytes; the error is that of logarithms, where a factor of e counts 1."""
        wanted = item.answer
        assert isinstance(wanted, int)
        assert isinstance(prediction, int | float)
        off = abs(prediction - wanted)
        scores = {
            "within_10_percent": float(off <= _NEAR * wanted),
            "exact": float(off == 0),
        }
        return TaskGrade(scores, {"mean_log_error": abs(math.log((prediction + 1) / (wanted + 1)))})
