"""Reduces the statements of a file."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from jaxsight_repro.checks.base import CALL, Script
from jaxsight_repro.failures import EXCEPTION, FINISHED, RunFailure, failure_in
from jaxsight_repro.reducing.checker import CandidateKind, Checker, reduced
from jaxsight_repro.reducing.loading import demonstration_of
from jaxsight_repro.reducing.statements.analysis import analyse
from jaxsight_repro.reducing.statements.deletion import focus, runs
from jaxsight_repro.reducing.statements.simplification import (
    FileText,
    bodies,
    cost,
    count,
    of_file,
    simplify,
    without_data,
    written,
)
from jaxsight_repro.reducing.task import Reduced, Task, fails


def reduce(task: Task) -> Reduced:
    """Reduce the text of a file.

    Raises:
        CannotReduce: it does not fail as expected.
    """
    text = _with_demonstration(task, of_file(task.loaded.text))
    expected = _parts(text)  # a repro stays one, with its demonstration
    unit = CandidateKind(
        "statements",
        partial(_observed, task),
        digest=lambda text: text.digest,
        count=count,
        save=lambda text, _, path: _save(task.loaded.file, text, path),
        admits=lambda text: None in expected or _parts(text) == expected,
        # An error that JAX raised, or no exception: the user's text fails in many other ways.
        keeps=lambda failure: bool(failure.kind not in (FINISHED, EXCEPTION) or failure.frame),
    )
    checker = Checker(task, unit, [text])
    checker.calibrate()
    return reduced(checker, _to_fixed_point)


def _parts(text: FileText) -> tuple[str | None, ...]:
    """Return the names of a repro's functions, and its demonstration; None for what is missing."""
    tree = text.tree
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    block = demonstration_of(tree)
    return (
        "main" if "main" in names else None,
        "inputs" if "inputs" in names else None,
        None if block is None else ast.unparse(block),
    )


def _with_demonstration(task: Task, text: FileText) -> FileText:
    """Return the text with the demonstration of the check in place of its own."""
    lines = task.check.demonstration
    if not task.check.text or lines == CALL:
        return text
    tree = text.tree
    if (block := demonstration_of(tree)) is not None:
        block.body = ast.parse("\n".join(["import jax", "import numpy as np", *lines])).body
    return written(tree, text.header)


def _to_fixed_point(text: FileText, checker: Checker[FileText]) -> FileText:
    file, limits = str(checker.task.loaded.file), checker.task.limits
    text = checker.swept(text, without_data)
    while True:
        before = cost(text)
        analysis = analyse(text, file, limits)
        if not isinstance(checker.check, Script):
            while (smaller := checker.first(focus(text, analysis))) is not None:
                text = smaller
                analysis = analyse(text, file, limits)
        size = max((len(getattr(node, name)) for node, name in bodies(text.tree)), default=1)
        while size:
            smaller = checker.swept(text, partial(runs, analysis=analysis, size=size))
            if smaller is not text:
                text = smaller
                analysis = analyse(text, file, limits)
            size //= 2
        text = simplify(text, checker)
        if cost(text) >= before:
            return text


def _observed(task: Task, text: FileText) -> RunFailure:
    """Run a candidate: in this process, or in one of its own if its file matters."""
    file, check = task.loaded.file, task.check
    if not (check.as_file or isinstance(check, Script)):
        namespace = {"__name__": "__main__", "__file__": str(file)}
        code = compile(text.body, str(file), "exec")
        task.unset()  # what a candidate does not set, its file will not have either
        return failure_in(lambda: exec(code, namespace))  # noqa: S102 - runs user code
    with tempfile.TemporaryDirectory(prefix="jaxsight-candidate-") as folder:
        path = Path(folder, file.name)
        _save(file, text, path)
        if not isinstance(check, Script):
            return fails(path, task.limits)
        finished = subprocess.run([check.script, path], check=False, cwd=folder)
    if finished.returncode:
        return RunFailure(EXCEPTION, "SystemExit", f"exit status {finished.returncode}")
    return RunFailure(FINISHED)


def _save(file: Path, text: FileText, path: Path) -> None:
    """Write a text, with the arrays beside the original file if it reads them."""
    path.write_text(text.whole, encoding="utf-8")
    if ".npz" in text.body:
        with suppress(FileNotFoundError, shutil.SameFileError):
            shutil.copyfile(file.with_suffix(".npz"), path.with_suffix(".npz"))
