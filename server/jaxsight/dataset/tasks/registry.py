"""The tasks by their names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

from jaxsight.dataset.tasks.kernel_line import KernelLineTask
from jaxsight.dataset.tasks.kernels import KernelsTask
from jaxsight.dataset.tasks.programs import ImproveTask, ProgramJudge, SourceTask
from jaxsight.dataset.tasks.proofs import PairProofs
from jaxsight.dataset.tasks.same_program import SameProgramTask
from jaxsight.dataset.tasks.selection import QuestionSet
from jaxsight.dataset.tasks.task import DatasetTask
from jaxsight.dataset.tasks.temporaries import TemporariesTask
from jaxsight.dataset.tasks.workers import TaskWorkers


class TaskName(StrEnum):
    """What is to be predicted."""

    improve = "improve"
    kernels = "kernels"
    kernel_line = "kernel-line"
    same_program = "same-program"
    source_from_ir = "source-from-ir"
    temporaries = "temporaries"


RUN_PREDICTIONS = frozenset({TaskName.improve, TaskName.source_from_ir})
"""Tasks that run what a model predicts."""

RUN_PROGRAMS = RUN_PREDICTIONS | {TaskName.same_program}
"""Tasks that run programs of the dataset."""


@contextlib.contextmanager
def task_of(asked: QuestionSet) -> Iterator[DatasetTask]:
    """Provide the task of questions; the processes that it needs end with the block."""
    match TaskName(asked.task):
        case TaskName.kernels:
            yield KernelsTask(asked.target)
        case TaskName.kernel_line:
            yield KernelLineTask(asked.target)
        case TaskName.improve:
            with TaskWorkers(asked.python) as workers:
                yield ImproveTask(ProgramJudge(workers), asked.table)
        case TaskName.source_from_ir:
            with TaskWorkers(asked.python) as workers:
                yield SourceTask(ProgramJudge(workers), asked.given)
        case TaskName.same_program:
            with TaskWorkers(asked.python) as workers:
                yield SameProgramTask(workers, PairProofs(workers))
        case TaskName.temporaries:
            yield TemporariesTask(asked.target)
