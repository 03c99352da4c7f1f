"""GivenPredictions without a model, to compare models with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from jaxsight.dataset.program import Record
from jaxsight.dataset.tasks.task import TaskItem


class BaselineName(StrEnum):
    """What predicts."""

    constant = "constant"
    nearest = "nearest"


def predicted(
    name: BaselineName, training: Sequence[TaskItem], asked: Sequence[TaskItem]
) -> Iterator[Record]:
    """Yield predictions for questions, as a file has them.

    Args:
        name: `constant`: the most frequent answer in training; `nearest`: the answer for the
            program that shares most shingles of operations.
        training: questions with answers; at least one.
        asked: the questions to answer.
    """
    texts = [json.dumps(item.answer) for item in training]
    constant = json.loads(Counter(texts).most_common(1)[0][0])
    for item in asked:
        prediction = constant
        if name is BaselineName.nearest:
            prediction = max(training, key=lambda other: _shared(item, other)).answer
        yield {"id": item.id, "prediction": prediction}


def _shared(first: TaskItem, second: TaskItem) -> int:
    """Return how many hashes of two programs are equal."""
    return sum(a == b for a, b in zip(first.minhash, second.minhash, strict=True))
