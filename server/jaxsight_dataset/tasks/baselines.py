"""Predictions without a model, to compare models with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from jaxsight_dataset.program import Record
from jaxsight_dataset.tasks.task import DatasetTask, NoBaseline, TaskItem


class BaselineName(StrEnum):
    """What predicts."""

    constant = "constant"
    nearest = "nearest"
    jaxsight = "jaxsight"


def constant(training: Sequence[TaskItem], asked: Sequence[TaskItem]) -> Iterator[Record]:
    """Yield the most frequent answer of training for each question."""
    texts = [json.dumps(item.answer) for item in training]
    answer = json.loads(Counter(texts).most_common(1)[0][0])
    for item in asked:
        yield {"id": item.id, "prediction": answer}


def nearest(training: Sequence[TaskItem], asked: Sequence[TaskItem]) -> Iterator[Record]:
    """Yield the answers for the programs of training that share most shingles of operations.

    Raises:
        NoBaseline: the questions are about two programs.
    """
    if not all(item.minhash and "second" not in item.question for item in asked):
        raise NoBaseline("pairs of programs have no nearest one")
    for item in asked:
        neighbour = max(training, key=lambda other: _shared(item, other))
        yield {"id": item.id, "prediction": neighbour.answer}


def estimated(task: DatasetTask, asked: Sequence[TaskItem]) -> Iterator[Record]:
    """Yield jaxsight's own predictions.

    Raises:
        NoBaseline: it has none for the task.
    """
    for item in asked:
        yield {"id": item.id, "prediction": task.estimate(item)}


def _shared(first: TaskItem, second: TaskItem) -> int:
    """Return how many hashes of two programs are equal."""
    return sum(a == b for a, b in zip(first.minhash, second.minhash, strict=True))
