"""The task `kernels`: how many kernels XLA makes of a program, and of which kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight_dataset.program import Record
from jaxsight_dataset.tasks.task import DatasetTask, TaskGrade, TaskItem, of_target


@dataclass(frozen=True, slots=True)
class KernelsTask(DatasetTask):
    """Predict the number of kernels on a target, or the kind of each of them."""

    target: str
    columns = ("source_code", "function", "stablehlo", "targets")
    scores = ("exact", "within_one", "kinds")

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the question about a row; its answer is the kinds of the kernels."""
        figures = of_target(row, self.target)
        if figures is None:
            return []
        shown = {name: row[name] for name in ("source_code", "function", "stablehlo")}
        kinds = [kernel["kind"] for kernel in figures["kernels"]]
        is_whole = len(kinds) == figures["kernel_count"]
        answer = kinds if is_whole else figures["kernel_count"]
        return [TaskItem("", {**shown, "target": self.target}, answer)]

    def problem(self, prediction: object) -> str:
        """Return what is expected: a number, or a list of kinds."""
        is_count = type(prediction) is int and prediction >= 0
        is_list = isinstance(prediction, list) and all(isinstance(it, str) for it in prediction)
        return "" if is_count or is_list else "expected a number of kernels, or a list of kinds"

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare the count; and the kinds, whatever their order, where they are given."""
        off = abs(_count(prediction) - _count(item.answer))
        kinds = 0.0
        if isinstance(prediction, list) and isinstance(item.answer, list):
            kinds = shared(Counter(item.answer), Counter(prediction))
        scores = {
            "exact": float(off == 0),
            "within_one": float(off <= 1),
            "kinds": kinds,
        }
        return TaskGrade(scores, {"mean_absolute_error": float(off)})


def _count(kernels: object) -> int:
    """Return how many kernels a number or a list of kinds is."""
    return len(kernels) if isinstance(kernels, list) else kernels  # type: ignore[return-value]


def shared(wanted: Counter[str], given: Counter[str]) -> float:
    """Return the F1 score of a collection: 1 for the same, 0 where nothing is shared."""
    total = wanted.total() + given.total()
    return 2 * (wanted & given).total() / total if total else 1.0
