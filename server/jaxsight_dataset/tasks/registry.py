"""The tasks by their names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

from jaxsight_dataset.tasks.kernels import KernelsTask
from jaxsight_dataset.tasks.proofs import PairProofs
from jaxsight_dataset.tasks.same_program import SameProgramTask
from jaxsight_dataset.tasks.selection import QuestionSet
from jaxsight_dataset.tasks.task import DatasetTask
from jaxsight_dataset.tasks.workers import TaskWorkers


class TaskName(StrEnum):
    """What is to be predicted."""

    kernels = "kernels"
    same_program = "same-program"


@contextlib.contextmanager
def task_of(asked: QuestionSet) -> Iterator[DatasetTask]:
    """Provide the task of questions; the processes that it needs end with the block."""
    match TaskName(asked.task):
        case TaskName.kernels:
            yield KernelsTask(asked.target)
        case TaskName.same_program:
            with TaskWorkers(asked.python) as workers:
                yield SameProgramTask(workers, PairProofs(workers))
