"""The task `same-program`: whether two modules are the same program, or differ in one place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from jaxsight_dataset.program import Record
from jaxsight_dataset.tables import again
from jaxsight_dataset.tasks import changes
from jaxsight_dataset.tasks.proofs import PairProofs
from jaxsight_dataset.tasks.task import DatasetTask, TaskGrade, TaskItem
from jaxsight_dataset.tasks.workers import TaskWorkers

_PAIRS = 2
"""Pairs of each answer that a row has at most, a choice: more would resemble each other."""

_TRIED = 6
"""Changes that are tried for them, a choice: most pass; a program that has none takes no longer."""


@dataclass(frozen=True, slots=True)
class SameProgramTask(DatasetTask):
    """Predict whether two modules are the same program.

    Locals of the second one have other names, and orders without an effect are changed. If it is
    not the same, an operator, function, axis, dtype, constant or order is another one, too.
    """

    workers: TaskWorkers
    proofs: PairProofs
    columns = (*again.COLUMNS, "x64")
    scores = ("accuracy",)

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return pairs of a row that are proved to be the same, and as many that are not."""
        draws = random.Random(chance)
        text = row["source_code"]
        others: list[Record] = []
        for change, mutant in islice(changes.mutants(text, draws), _TRIED):
            others.append({"text": mutant, "same": False, "change": change})
        others += [{"text": text, "same": True, "change": ""} for _ in range(_PAIRS + 1)]
        for other in others:
            other["text"] = changes.rewritten(other["text"], draws)
        request = {"action": "compare", "program": again.program(row), "others": others}
        proved = self.proofs.of({**request, "most": _PAIRS}, x64=row["x64"])
        answers = [[each for each in proved if each["same"] is same] for same in (True, False)]
        pairs = [pair for both in zip(*answers, strict=False) for pair in both]
        draws.shuffle(pairs)
        return [_item(row, at, pair) for at, pair in enumerate(pairs)]

    def problem(self, prediction: object) -> str:
        """Return what is expected: true or false."""
        return "" if type(prediction) is bool else "expected true or false"

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare answers; what was wrong is counted by the kind of change."""
        is_right = prediction is item.answer
        change = item.facts["change"]
        reason = f"another {change} was called the same" if change else "called different"
        return TaskGrade({"accuracy": float(is_right)}, reason="" if is_right else reason)

    def estimate(self, item: TaskItem) -> object:
        """Return whether both are traced to the same jaxpr, up to values of literals."""
        digests = [self._digest(item.question, name) for name in ("first", "second")]
        return digests[0] == digests[1]

    def _digest(self, question: Record, name: str) -> object:
        program = again.bare_program(question[name], question["function"], question["arguments"])
        request = {"action": "survey", "program": program}
        answer = self.workers.ask(request, x64=question["x64"])
        return answer.get("program", answer.get("message"))


def _item(row: Record, at: int, pair: Record) -> TaskItem:
    question = {
        "first": row["source_code"],
        "second": pair["text"],
        **{name: row[name] for name in ("function", "arguments", "x64")},
    }
    facts = {"change": pair["change"], "proof": pair["proof"]}
    return TaskItem(f"{at}", question, pair["same"], facts=facts)
