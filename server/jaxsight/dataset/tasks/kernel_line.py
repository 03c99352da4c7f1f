"""The task `kernel-line`: which lines of the source a kernel computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.dataset.program import Record
from jaxsight.dataset.tasks.kernels import shared
from jaxsight.dataset.tasks.task import TaskGrade, TaskItem, of_target

_METADATA = re.compile(r", metadata=\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class KernelLineTask:
    """Predict a line that a kernel belongs to, or all of them."""

    target: str
    columns = ("source_code", "function", "hlo", "targets", "alignment")
    scores = ("hit", "lines")
    predicts_programs = False

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the question about one kernel of a row; none if no kernel has a line.

        The HLO of the question is without metadata, which names equations.
        """
        figures = of_target(row, self.target)
        if figures is None:
            return []
        lines_of = {each["equation"]: _lines(each) for each in row["alignment"]}
        known = [
            (kernel, sorted({line for path in kernel["equations"] for line in lines_of[path]}))
            for kernel in figures["kernels"]
            if all(path in lines_of for path in kernel["equations"])
        ]
        known = [(kernel, lines) for kernel, lines in known if lines]
        if not known:
            return []
        kernel, lines = known[chance % len(known)]
        question = {
            "source_code": row["source_code"],
            "function": row["function"],
            "target": self.target,
            "hlo": _METADATA.sub("", figures["hlo"] or row["hlo"]),
            "kernel": {name: kernel[name] for name in ("name", "kind", "bytes_in", "bytes_out")},
        }
        return [TaskItem("", question, lines)]

    def problem(self, prediction: object) -> str:
        """Return what is expected: a line, or several."""
        lines = prediction if isinstance(prediction, list) else [prediction]
        is_fine = lines and all(type(line) is int for line in lines)
        return "" if is_fine else "expected a line number, or a list of them"

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare lines: `hit` if all that are given are right, `lines` is their F1 score."""
        assert isinstance(item.answer, list)
        given = set(prediction if isinstance(prediction, list) else [prediction])
        wanted = set(item.answer)
        overlap = shared(Counter(map(str, wanted)), Counter(map(str, given)))
        return TaskGrade({"hit": float(given <= wanted), "lines": overlap})


def _lines(aligned: Record) -> list[int]:
    """Return the first line of an equation's expression, where it has one."""
    return [] if aligned["line"] is None else [aligned["line"]]
