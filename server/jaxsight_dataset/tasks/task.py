"""What a task is: questions about rows, and how a prediction is graded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jaxsight_dataset.program import Record


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A question about a row.

    Attributes:
        id: identifies it among the questions of a task, split and seed.
        question: what a model is given, as JSON.
        answer: a prediction that gets full marks; None if none is known.
        minhash: that of the row, for the nearest neighbour.
        facts: about the answer, as JSON, for training and grading.
    """

    id: str
    question: Record
    answer: object
    minhash: tuple[int, ...] = ()
    facts: Record = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskGrade:
    """What a valid prediction gets.

    Attributes:
        scores: from 0 to 1 by name; a question without a valid prediction gets 0.
        errors: figures that are better the smaller they are; averaged over valid predictions.
        reason: why it is wrong, in words that are counted; empty if there is nothing to say.
    """

    scores: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class NoBaseline(Exception):
    """A task has no such baseline; the text says which."""


class DatasetTask(ABC):
    """Something to predict.

    Attributes:
        columns: those of the rows that questions, answers and grades are made of.
        scores: the names of the scores; the first one ranks models.
    """

    columns: ClassVar[Sequence[str]]
    scores: ClassVar[Sequence[str]]

    @abstractmethod
    def items(self, row: Record, chance: int) -> Sequence[TaskItem]:
        """Return the questions about a row; ids are parts that differ, empty for a single one.

        Args:
            row: with `columns`, `number` and `minhash`.
            chance: a number that depends on the dataset, the seed and the row.
        """

    @abstractmethod
    def problem(self, prediction: object) -> str:
        """Return what is expected instead of a prediction of another type; empty if it is valid."""

    @abstractmethod
    def grade(self, item: TaskItem, prediction: object) -> TaskGrade:
        """Return what a valid prediction for an item gets."""

    def estimate(self, item: TaskItem) -> object:
        """Return jaxsight's own prediction.

        Raises:
            NoBaseline: it has none.
        """
        raise NoBaseline("jaxsight has no prediction for this task here")


def of_target(row: Record, target: str) -> Record | None:
    """Return the figures of a row on a target, None if it was not compiled for it."""
    found = (each for each in row["targets"] if each["target"] == target)
    return next((each for each in found if not each.get("refused")), None)
