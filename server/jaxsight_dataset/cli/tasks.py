"""Ask questions about a dataset, and score answers: `questions`, `baseline` and `eval`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, print_json
from jaxsight.cli.parameters import AsJson, Group, Python
from jaxsight.cli.user_python import user_interpreter
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight_dataset.cli.errors import announce, explained, interruptible
from jaxsight_dataset.cli.printing import print_evaluation
from jaxsight_dataset.cli.progress import RowProgress
from jaxsight_dataset.program import Record
from jaxsight_dataset.tables import files
from jaxsight_dataset.tables.manifest import SplitName
from jaxsight_dataset.tasks import evaluation
from jaxsight_dataset.tasks.baselines import BaselineName
from jaxsight_dataset.tasks.registry import TaskName
from jaxsight_dataset.tasks.selection import QuestionSet

app = Group()

Task = Annotated[TaskName, "(TASK): What is predicted."]

Dataset = Annotated[Path, "(DATASET): Folder of the dataset."]

Output = Annotated[Path, "(--output -o FILE): JSON Lines."]

Split = Annotated[SplitName, "Split to ask about."]

Seed = Annotated[int, "(>=0): Seed of the questions."]

Limit = Annotated[int | None, "(>=1): Most rows to ask about. [default: all]"]

Target = Annotated[str, "(NAME): Device of kernels and memory."]


@app.command("questions")
@command
def questions(
    task: Task,
    dataset: Dataset,
    *,
    output: Output,
    split: Split = SplitName.test,
    seed: Seed = 0,
    limit: Limit = None,
    target: Target = "cpu",
    with_answers: bool = False,
    python: Python = None,
) -> int:
    """Write the questions of a task about a dataset, as JSON Lines.

    A dataset, split, seed and limit have the same questions each time. Each has an `id`; a file of
    predictions has lines with `id` and `prediction`.

    Args:
        with_answers: Add answers, for training.
    """
    with explained(), interruptible(), RowProgress() as progress:
        asked = _asked(task, dataset, split, seed, limit, target, python, progress)
        found = list(evaluation.questions(asked, with_answers=with_answers))
        if not found:
            raise CommandError(f"the dataset has no question of {asked}")
        count = _write(output, found)
    Printer().print(f"{one_line(str(output))}: {units.count(count, 'question')}")
    return 0


@app.command("baseline")
@command
def baseline(
    task: Task,
    name: BaselineName,
    dataset: Dataset,
    *,
    output: Output,
    split: Split = SplitName.test,
    seed: Seed = 0,
    limit: Limit = None,
    target: Target = "cpu",
    python: Python = None,
) -> int:
    """Write predictions without a model, to compare models with.

    `constant` is the most frequent answer of the split `train`; `nearest` the answer for its
    program that shares most operations with the one that is asked about; `jaxsight` its own
    answer, of same-program.

    Args:
        name (NAME): What predicts.
    """
    with explained(), interruptible(), RowProgress() as progress:
        asked = _asked(task, dataset, split, seed, limit, target, python, progress)
        predicted = evaluation.baseline(asked, name)
        count = _write(output, predicted)
    Printer().print(f"{one_line(str(output))}: {units.count(count, 'prediction')}")
    return 0


@app.command("eval")
@command
def evaluate(
    task: Task,
    predictions: Path,
    dataset: Path = Path(),
    *,
    split: Split = SplitName.test,
    seed: Seed = 0,
    limit: Limit = None,
    target: Target = "cpu",
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Score predictions of a task.

    A question without a prediction, or with one of another type, counts as wrong. A prediction for
    a question that is not asked, or a second one, is an error: it is of other options.

    Args:
        predictions (PREDICTIONS): JSON Lines with id and prediction.
        dataset (DATASET): Folder of the dataset. [default: .]
    """
    with explained(), interruptible(), RowProgress() as progress:
        asked = _asked(task, dataset, split, seed, limit, target, python, progress)
        report = partial(progress.report, "predictions")
        found = evaluation.evaluate(asked, predictions, report)
    if as_json:
        print_json(found.record())
    else:
        print_evaluation(found)
    return 0


def _asked(
    task: TaskName,
    dataset: Path,
    split: SplitName,
    seed: int,
    limit: int | None,
    target: str,
    python: str | None,
    progress: RowProgress,
) -> QuestionSet:
    """Return what is asked; where programs are run, say so, and look for an interpreter."""
    interpreter = ""
    if task is TaskName.same_program:
        interpreter = user_interpreter(python)
        announce(f"the source of rows of {one_line(str(dataset))}")
    report = partial(progress.report, "rows")
    return QuestionSet(task, dataset, split, seed, limit, target, interpreter, report)


def _write(output: Path, records: Iterable[Record]) -> int:
    """Write records as JSON Lines, and return how many there are."""
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    files.replace_text(output, "".join(lines))
    return len(lines)
