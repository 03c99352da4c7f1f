"""The task `kernels`: how many kernels XLA makes of a program, and of which kinds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jaxsight.dataset.program import Record
from jaxsight.dataset.tasks.task import TaskGrade, TaskItem, of_target


@dataclass(frozen=True, slots=True)
class KernelsTask:
    """Predict the number of kernels on a target, or the kind of each of them."""

    target: str
    columns = ("source_code", "function", "stablehlo", "targets")
    scores = ("exact", "within_one", "kinds")
    predicts_programs = False

    def item(self, row: Record, chance: int) -> TaskItem | None:
        """Return the question about a row; its answer is the kinds of the kernels."""
        figures = of_target(row, self.target)
        if figures is None:
            return None
        shown = {name: row[name] for name in ("source_code", "function", "stablehlo")}
        answer = [kernel["kind"] for kernel in figures["kernels"]]
        facts = {"count": figures["kernel_count"], "kinds": answer}
        is_whole = len(answer) == figures["kernel_count"]
        return TaskItem(
            "", {**shown, "target": self.target}, answer if is_whole else facts["count"], (), facts
        )

    def problem(self, prediction: object) -> str:
        """Return what is expected: a number, or a list of kinds."""
        is_count = type(prediction) is int and prediction >= 0
        is_list = isinstance(prediction, list) and all(isinstance(it, str) for it in prediction)
        return "" if is_count or is_list else "expected a number of kernels, or a list of kinds"

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare the count; and the kinds, whatever their order, where they are given."""
        wanted, kinds = item.facts["count"], item.facts["kinds"]
        count = len(prediction) if isinstance(prediction, list) else prediction
        assert isinstance(count, int)
        off = abs(count - wanted)
        given = prediction if isinstance(prediction, list) else []
        scores = {
            "exact": float(off == 0),
            "within_one": float(off <= 1),
            "kinds": shared(Counter(kinds), Counter(given)),
        }
        return TaskGrade(scores, {"mean_absolute_error": float(off)})


def shared(wanted: Counter[str], given: Counter[str]) -> float:
    """Return the F1 score of a collection: 1 for the same, 0 where nothing is shared."""
    total = wanted.total() + given.total()
    return 2 * (wanted & given).total() / total if total else 1.0
