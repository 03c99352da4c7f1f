"""Predict programs for the task `improve` by fixes of `jaxsight check`: jaxsight's own baseline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from jaxsight.cli.datasets.fixing import ProgramFixes, program_fixes
from jaxsight.cli.user_python import process_variable
from jaxsight.dataset.program import Record
from jaxsight.dataset.tasks.programs import ImproveTask
from jaxsight.dataset.tasks.registry import task_of
from jaxsight.dataset.tasks.selection import QuestionSet
from jaxsight.dataset.tasks.task import TaskItem
from jaxsight.rules.fixing.context import applied


def improved(asked: QuestionSet, on_program: Callable[[int, int], None]) -> list[Record]:
    """Return programs with the proved fixes that save kernels or memory; others as they are.

    Args:
        asked: questions of `improve`.
        on_program: called with how many programs are checked, and how many there are.

    Raises:
        NoDataset, UnreadableFile, MissingLibrary: as `read_rows`.
    """
    with task_of(asked) as task:
        assert isinstance(task, ImproveTask)
        items = asked.items(task)
        texts: dict[str, str] = {}

        def add(item: TaskItem, text: str) -> None:
            texts[item.id] = text
            on_program(len(texts), len(items))

        ordered = sorted(items, key=_has_x64)
        for x64, some in groupby(ordered, key=_has_x64):
            with process_variable("JAX_ENABLE_X64", f"{int(x64)}"):
                asyncio.run(_improve(task, list(some), asked.python, add))
    return [{"id": item.id, "prediction": texts[item.id]} for item in items]


def _has_x64(item: TaskItem) -> bool:
    return bool(item.question["x64"])


async def _improve(
    task: ImproveTask, items: Sequence[TaskItem], python: str, add: Callable[[TaskItem, str], None]
) -> None:
    """Fix the programs of questions with the same setting of 64-bit types."""
    async with program_fixes(python) as fixes:
        for at, item in enumerate(items):
            add(item, await _best(task, item, fixes, f"program_{at}"))


async def _best(task: ImproveTask, item: TaskItem, fixes: ProgramFixes, name: str) -> str:
    """Return a program with one fix after another, as long as each improves it.

    A fix counts only if the scorer says so: `jaxsight check` also proves fixes that save
    something else. Each round has fewer kernels, or as many and less memory, so the rounds end.
    """
    text: str = item.question["source_code"]
    rounds = 0
    while True:
        now = replace(item, question={**item.question, "source_code": text})
        for fix in await fixes.of(f"{name}_{rounds}", text) or ():
            changed = applied(text, fix.edits)
            grade = await asyncio.to_thread(task.grade, now, changed)
            if grade.scores.get("improved"):
                text = changed
                break
        else:
            return text
        rounds += 1
