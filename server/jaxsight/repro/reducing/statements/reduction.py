"""Reduces the statements of a file."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jaxsight.repro.checks.base import CALL
from jaxsight.repro.checks.outside import Script
from jaxsight.repro.failures import EXCEPTION, FINISHED, HANG, Failure
from jaxsight.repro.reducing.checker import Checker, Kind, Settings, raised
from jaxsight.repro.reducing.flakiness import calibrate
from jaxsight.repro.reducing.options import CannotReduce, Reduced
from jaxsight.repro.reducing.statements.analysis import analyse
from jaxsight.repro.reducing.statements.deletion import focus, sweep
from jaxsight.repro.reducing.statements.simplification import simplify
from jaxsight.repro.reducing.statements.texts import (
    Text,
    bodies,
    cost,
    count,
    is_demonstration,
    of_file,
    written,
)
from jaxsight.repro.reducing.task import Task


def reduce(task: Task) -> Reduced:
    """Reduce the text of a file.

    Raises:
        CannotReduce: it does not fail as expected.
    """
    text = _with_demonstration(task, of_file(task.loaded.text))
    settings = Settings(task.check, Failure(HANG), task.limits, task.options.jobs)
    kind = Kind("statements", _observer(task), lambda text: text.digest, count, _admitted(text))
    checker = Checker(settings, kind, task.journal, task.report, [text])
    confidence = calibrate(checker, text, task.is_expected)
    checker.progress(force=True)
    minimal = interrupted = False
    try:
        _to_fixed_point(text, checker, task)
        minimal = True
    except KeyboardInterrupt:
        interrupted = True
    last = checker.accepted[-1]
    failure = _emit(task, checker)
    return Reduced(
        path=task.out,
        failure=failure,
        before=count(text),
        after=count(checker.accepted[-1]),
        unit="statements",
        tried=checker.tried,
        seconds=time.monotonic() - task.start,
        minimal=minimal and checker.accepted[-1] is last,
        interrupted=interrupted,
        confidence=confidence,
        others=_others(task, checker),
    )


def _admitted(original: Text) -> Callable[[Text], bool]:
    """Return which candidates are run: those of a repro stay one, with its demonstration."""
    expected = _parts(original)
    if None in expected:
        return lambda text: True
    return lambda text: _parts(text) == expected


def _parts(text: Text) -> tuple[str | None, ...]:
    """Return the names of a repro's functions, and its demonstration; None for what is missing."""
    names = {node.name for node in text.tree.body if isinstance(node, ast.FunctionDef)}
    block = next(filter(is_demonstration, text.tree.body), None)
    return (
        "main" if "main" in names else None,
        "inputs" if "inputs" in names else None,
        None if block is None else ast.unparse(block),
    )


def _with_demonstration(task: Task, text: Text) -> Text:
    """Return the text with the demonstration of the check in place of its own."""
    lines = task.check.demonstration
    if not task.check.text or lines == CALL:
        return text
    tree = text.tree
    for statement in tree.body:
        if is_demonstration(statement):
            assert isinstance(statement, ast.If)
            statement.body = ast.parse("\n".join(["import jax", "import numpy as np", *lines])).body
    return written(tree, text.header)


def _to_fixed_point(text: Text, checker: Checker[Text], task: Task) -> None:
    file, limits = str(task.loaded.file), task.limits
    is_script = isinstance(task.check, Script)
    while True:
        before = cost(text)
        analysis = analyse(text, file, limits)
        if not is_script:
            while (smaller := checker.first(focus(text, analysis))) is not None:
                text = smaller
                analysis = analyse(text, file, limits)
        size = max((len(getattr(node, name)) for node, name in bodies(text.tree)), default=1)
        while size:
            smaller = sweep(text, checker, analysis, size)
            if smaller is not text:
                text = smaller
                analysis = analyse(text, file, limits)
            size //= 2
        text = simplify(text, checker)
        if cost(text) >= before:
            return


def _observer(task: Task) -> Callable[[Text], Failure]:
    """Return what runs a candidate in a child."""
    file = str(task.loaded.file)
    check = task.check
    if isinstance(check, Script):
        return lambda text: _run_script(check, text, task.loaded.file)

    def observe(text: Text) -> Failure:
        namespace = {"__name__": "__main__", "__file__": file}
        code = compile(text.body, file, "exec")
        return raised(lambda: exec(code, namespace))  # noqa: S102 - runs user code

    return observe


def _run_script(check: Script, text: Text, file: Path) -> Failure:
    """Run a script with the path of a candidate, beside which are the candidate's arrays."""
    with tempfile.TemporaryDirectory(prefix="jaxsight-candidate-") as folder:
        path = Path(folder, file.name)
        path.write_text(text.whole, encoding="utf-8")
        _copy_arrays(file, path)
        finished = subprocess.run([check.script, path], check=False, cwd=folder)
    if finished.returncode:
        return Failure(EXCEPTION, "SystemExit", f"exit status {finished.returncode}")
    return Failure(FINISHED)


def _copy_arrays(file: Path, path: Path) -> None:
    """Copy the arrays beside a file to a place beside another."""
    with suppress(FileNotFoundError, shutil.SameFileError):
        shutil.copyfile(file.with_suffix(".npz"), path.with_suffix(".npz"))


def _emit(task: Task, checker: Checker[Text]) -> Failure:
    """Write the last accepted candidate that fails as expected; return how it fails.

    Raises:
        CannotReduce: there is none.
    """
    accepted = checker.accepted
    step = 1
    while True:
        _save(task, accepted[-1], task.out)
        if isinstance(task.check, Script):
            return Failure(FINISHED)
        failure = task.validated(checker.settings)
        if failure is not None:
            return failure
        if len(accepted) == 1:
            raise CannotReduce("the reduced file does not fail in a fresh process")
        del accepted[max(len(accepted) - step, 1) :]
        step *= 2


def _save(task: Task, text: Text, path: Path) -> None:
    path.write_text(text.whole, encoding="utf-8")
    if ".npz" in text.body:
        _copy_arrays(task.loaded.file, path)


def _others(task: Task, checker: Checker[Text]) -> tuple[Path, ...]:
    """Write the candidates that failed in other ways; JAX must have raised the error."""
    paths: list[Path] = []
    for failure, text in checker.others.values():
        if failure.kind != EXCEPTION or failure.frame:
            path = task.out.with_name(f"{task.out.stem}.other{len(paths) + 1}.py")
            _save(task, text, path)
            paths.append(path)
    return tuple(paths)
