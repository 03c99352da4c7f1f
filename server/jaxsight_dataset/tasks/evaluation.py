"""Asks the questions of a task, and scores predictions: `jaxsight_dataset.evaluate`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import jaxsight
from jaxsight_dataset.program import Record
from jaxsight_dataset.tables.verification import Splits, Verified
from jaxsight_dataset.tasks import predictions as reading
from jaxsight_dataset.tasks.baselines import BaselineName, constant, estimated, nearest
from jaxsight_dataset.tasks.predictions import InvalidPredictions, ModelPredictions
from jaxsight_dataset.tasks.registry import TaskName, task_of
from jaxsight_dataset.tasks.selection import QuestionSet
from jaxsight_dataset.tasks.task import DatasetTask, TaskGrade, TaskItem

VERSION = 1
"""The version of tasks and scores: figures of another one are not comparable."""

_REASONS = 20
"""Reasons that a record lists, the most frequent first, a choice; a model can cause any number."""


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """The scores of predictions: a line of a leaderboard.

    Attributes:
        task: its name.
        task_version: figures of another one are not comparable.
        target: the device that is asked about.
        dataset: `digest` of the rows, `rows`, and the `versions` that made them.
        split: the split that was asked about.
        seed: that of the questions.
        limit: the most rows that were asked about, None for all.
        predictions: the digest of the file, empty if they were given in Python.
        questions: how many there are.
        valid: how many have a valid prediction.
        missing: how many have none.
        invalid: how many have one of another type.
        scores: from 0 to 1, over all questions; the first one ranks.
        standard_errors: those of the scores.
        errors: averages over valid predictions; the smaller the better.
        reasons: why predictions got less than 1, with how often.
        leaks: how much of the split is also in `train`, by kind.
        jaxsight: the version that scored.
    """

    task: str
    task_version: int
    target: str
    dataset: Record
    split: str
    seed: int
    limit: int | None
    predictions: str
    questions: int
    valid: int
    missing: int
    invalid: int
    scores: dict[str, float]
    standard_errors: dict[str, float]
    errors: dict[str, float]
    reasons: dict[str, int]
    leaks: dict[str, int]
    jaxsight: str = jaxsight.__version__

    def record(self) -> Record:
        """Return this as JSON."""
        return asdict(self)


@dataclass(slots=True)
class _Tally:
    """What came of predictions until now."""

    scores: dict[str, list[float]]
    errors: dict[str, list[float]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: str, grade: TaskGrade) -> None:
        self.outcomes[outcome] += 1
        for name, given in self.scores.items():
            given.append(grade.scores.get(name, 0.0))
        for name, error in grade.errors.items():
            self.errors.setdefault(name, []).append(error)
        if grade.reason:
            self.reasons[grade.reason] += 1


def questions(asked: QuestionSet, *, with_answers: bool = False) -> Iterator[Record]:
    """Yield questions, the same ones each time.

    Args:
        asked: what is asked.
        with_answers: whether each has an `answer`, and facts about it, for training.

    Raises:
        NoDataset, UnreadableFile, MissingLibrary: as `read_rows`.
    """
    with task_of(asked) as task:
        for item in asked.items(task):
            known = {"answer": item.answer, **item.facts} if with_answers else {}
            yield {**item.question, **known}


def baseline(asked: QuestionSet, name: str) -> list[Record]:
    """Return predictions without a model, to compare models with: `id` and `prediction` of each.

    Args:
        asked: what is asked.
        name: `constant` or `nearest`, which know the answers for `train`, or `jaxsight`.

    Raises:
        InvalidPredictions: there is no question to learn from.
        NoBaseline: the task has no such baseline.
        NoDataset, UnreadableFile, MissingLibrary: as `read_rows`.
    """
    with task_of(asked) as task:
        items = asked.items(task)
        if name == BaselineName.jaxsight:
            return list(estimated(task, items))
        # To make questions of pairs, programs run: as many as are asked must do.
        limit = asked.limit if asked.task == TaskName.same_program else None
        training = replace(asked, split="train", limit=limit)
        known = training.items(task)
        if not known:
            raise InvalidPredictions(f"the dataset has no question of {training}")
        return list(
            constant(known, items) if name == BaselineName.constant else nearest(known, items)
        )


def evaluate(
    asked: QuestionSet,
    predictions: str | Path | Mapping[str, object],
    on_graded: Callable[[int, int], None] = lambda done, wanted: None,
) -> EvaluationRecord:
    """Score predictions.

    Args:
        asked: what was asked.
        predictions: a file of JSON Lines with `id` and `prediction`, or predictions by id.
        on_graded: called with how many predictions are graded, and how many there are.

    Raises:
        InvalidPredictions: the file has no predictions, or one for a question that is not asked.
        NoDataset, UnreadableFile, MissingLibrary: as `read_rows`.
    """
    if isinstance(predictions, Mapping):
        given = ModelPredictions(predictions, "")
    else:
        given = reading.read(Path(predictions))
    with task_of(asked) as task:
        items = asked.items(task)
        _check_ids(given, items, asked)
        tally = _Tally({name: [] for name in task.scores})
        for done, item in enumerate(items, start=1):
            tally.add(*_graded(task, item, given.of))
            on_graded(done, len(items))
    return EvaluationRecord(
        task=asked.task,
        task_version=VERSION,
        target=asked.target,
        dataset={
            "digest": asked.digest,
            "rows": sum(asked.manifest.splits("rows").values()),
            "versions": asked.manifest.versions,
        },
        split=asked.split,
        seed=asked.seed,
        limit=asked.limit,
        predictions=given.digest,
        questions=len(items),
        valid=tally.outcomes["valid"],
        missing=tally.outcomes["missing"],
        invalid=tally.outcomes["invalid"],
        scores={name: _mean(values) for name, values in tally.scores.items()},
        standard_errors={name: _standard_error(values) for name, values in tally.scores.items()},
        errors={name: _mean(values) for name, values in tally.errors.items()},
        reasons=dict(tally.reasons.most_common(_REASONS)),
        leaks=_leaks(asked),
    )


def _graded(
    task: DatasetTask, item: TaskItem, given: Mapping[str, object]
) -> tuple[str, TaskGrade]:
    """Return whether there is a valid prediction for a question, and what it gets."""
    if item.id not in given:
        return "missing", TaskGrade({}, reason="no prediction")
    prediction = given[item.id]
    if problem := task.problem(prediction):
        return "invalid", TaskGrade({}, reason=problem)
    return "valid", task.grade(item, prediction)


def _check_ids(given: ModelPredictions, items: list[TaskItem], asked: QuestionSet) -> None:
    """Compare the ids of predictions with those of questions.

    Raises:
        InvalidPredictions: there are no questions, or a prediction is for none of them.
    """
    if not items:
        raise InvalidPredictions(f"the dataset has no question of {asked}")
    known = {item.id for item in items}
    for identity in given.of:
        if identity not in known:
            raise InvalidPredictions(f"{reading.quoted(identity)} is no question of {asked}")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _standard_error(values: list[float]) -> float:
    """Return the standard error of a mean; 0 for a single value."""
    mean, count = _mean(values), len(values)
    spread = sum((value - mean) ** 2 for value in values)
    return math.sqrt(spread / (count - 1) / count) if count > 1 else 0.0


def _leaks(asked: QuestionSet) -> dict[str, int]:
    """Return how many programs, structures and templates of a split are also in `train`."""
    shared, splits = Verified(), Splits()
    for split in dict.fromkeys(("train", asked.split)):
        for row in asked.rows(split, ["number", "split", *Splits.COLUMNS]):
            splits.add(row, shared)
    counts = shared.counts
    return {"programs": counts["programs"], "structures_and_templates": counts["splits"]}
