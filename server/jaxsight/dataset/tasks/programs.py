"""Tasks whose predictions are programs: untrusted code, which is run under limits and judged.

One worker loads and traces what was predicted, and another judges the StableHLO that comes of it
(`judging.foreign`, `judging.proving`): predicted code cannot speak for its judge.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.dataset.program import Record
from jaxsight.dataset.tables import again
from jaxsight.dataset.tasks.selection import IrForm
from jaxsight.dataset.tasks.task import TaskGrade, TaskItem
from jaxsight.dataset.tasks.workers import TaskWorkers

_LONGEST = 1 << 20
"""Characters of a predicted module, a choice: those of datasets have a few thousand."""

_LONGEST_PROGRAM = 16 << 20
"""Characters of its StableHLO, a choice: those of datasets have at most a few 100,000."""

_WORDS = {
    "load": "cannot be loaded",
    "trace": "cannot be traced",
    "lower": "cannot be lowered",
    "run": "cannot be run",
    "parse": "gave no StableHLO",
    "compile": "cannot be compiled",
    "crash": "ended its process",
    "hang": "took too long",
    "memory": "used too much memory",
}


@dataclass(frozen=True, slots=True)
class ProgramJudge:
    """Judges predicted programs."""

    workers: TaskWorkers

    def judge(self, prediction: str, question: Record, source: str) -> Record:
        """Return whether a predicted module is equal to the source of a row.

        Returns:
            `wrong` with the reason; or `is_exact`, and the figures `before` and `after`.
        """
        called = question["function"], question["arguments"]
        x64 = question["x64"]
        request = {"action": "lower", "program": again.bare_program(prediction, *called)}
        lowered = self.workers.ask(request, x64=x64, purpose="foreign")
        if "rejected" in lowered:
            return {"wrong": _WORDS.get(str(lowered["rejected"]), "was rejected")}
        stablehlo, results = lowered.get("stablehlo"), lowered.get("results")
        if not isinstance(stablehlo, str) or not isinstance(results, str):
            return {"wrong": _WORDS["crash"]}
        if len(stablehlo) > _LONGEST_PROGRAM:
            return {"wrong": "is too large"}
        proof = self.workers.ask(
            {
                "action": "prove",
                "program": again.bare_program(source, *called),
                "stablehlo": stablehlo,
                "results": results,
            },
            x64=x64,
            purpose="judge",
        )
        if "rejected" in proof:
            cause = str(proof["rejected"])
            return {"wrong": _WORDS.get(cause, cause)}
        return {**proof, "wrong": "differs"} if proof["difference"] else proof


def problem_of_program(prediction: object) -> str:
    """Return what is expected: the text of a Python module."""
    is_fine = isinstance(prediction, str) and 0 < len(prediction) <= _LONGEST
    return "" if is_fine else "expected the text of a Python module"


@dataclass(frozen=True, slots=True)
class ImproveTask:
    """Predict an equal program with fewer kernels, or as many and less memory, on the CPU.

    Questions are about `before` of rewrite pairs, or about the source of rows.
    """

    judge: ProgramJudge
    table: str
    scores = ("improved", "equal", "kernels_saved", "memory_saved")
    predicts_programs = True

    @property
    def columns(self) -> Sequence[str]:
        """Those of the pairs, or of the rows."""
        shared = ("function", "arguments", "x64")
        if self.table == "rewrites":
            return (*shared, "before", "after", "figures_before", "figures_after")
        return (*shared, "source_code", "targets")

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the question about a row; of pairs, only about those whose fix improves these."""
        is_pair = self.table == "rewrites"
        if is_pair and not _is_better(row["figures_before"], row["figures_after"]):
            return []
        if not is_pair and _has_many_devices(row):
            return []
        question = {
            "source_code": row["before"] if is_pair else row["source_code"],
            **{name: row[name] for name in ("function", "arguments", "x64")},
        }
        figures = row["figures_before"] if is_pair else row["targets"][0]
        question |= {name: figures[name] for name in ("kernel_count", "temp_bytes")}
        json.loads(row["arguments"])
        return [TaskItem("", question, row["after"] if is_pair else None)]

    def problem(self, prediction: object) -> str:
        """Return what is expected: a module."""
        return problem_of_program(prediction)

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare figures of both programs, as they are compiled here."""
        assert isinstance(prediction, str)
        found = self.judge.judge(prediction, item.question, item.question["source_code"])
        if found.get("wrong"):
            return TaskGrade({}, reason=found["wrong"])
        before, after = found["before"], found["after"]
        scores = {"improved": 0.0, "equal": 1.0}
        if not _is_better(before, after):
            return TaskGrade(scores, reason="no better")
        for name, score in (("kernel_count", "kernels_saved"), ("temp_bytes", "memory_saved")):
            scores[score] = max(0.0, 1 - after[name] / max(before[name], 1))
        return TaskGrade({**scores, "improved": 1.0})


def _has_many_devices(row: Record) -> bool:
    """Return whether a row's program needs several devices: judges have one."""
    return (row["targets"][0]["devices"] or 1) > 1


def _is_better(before: Record, after: Record) -> bool:
    """Return whether a program has fewer kernels, or as many and less temporary memory."""
    figures = [(each["kernel_count"], each["temp_bytes"] or 0) for each in (before, after)]
    return figures[1] < figures[0]


@dataclass(frozen=True, slots=True)
class SourceTask:
    """Predict JAX source from StableHLO, or from optimized HLO."""

    judge: ProgramJudge
    given: IrForm
    columns = ("function", "arguments", "x64", "source_code", "stablehlo", "hlo", "targets")
    scores = ("equal", "exact")
    predicts_programs = True

    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the question about a row; the answer is its source."""
        if _has_many_devices(row):
            return []
        names = (self.given, "function", "arguments", "x64")
        json.loads(row["arguments"])
        return [TaskItem("", {name: row[name] for name in names}, row["source_code"])]

    def problem(self, prediction: object) -> str:
        """Return what is expected: a module."""
        return problem_of_program(prediction)

    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Compare results; `exact` if the StableHLO is the same up to names."""
        assert isinstance(prediction, str)
        assert isinstance(item.answer, str)
        found = self.judge.judge(prediction, item.question, item.answer)
        if found.get("wrong"):
            return TaskGrade({}, reason=found["wrong"])
        return TaskGrade({"equal": 1.0, "exact": float(found["is_exact"])})

    def estimate(self, item: TaskItem) -> object:
        """Return the source that `jaxsight sourcerize` writes; a comment if it writes none."""
        request = {"action": "source", "name": item.question["function"]}
        request["text"] = item.question[self.given]
        answer = self.judge.workers.ask(request, x64=item.question["x64"])
        return answer.get("source") or f"# {answer.get('message')}"
