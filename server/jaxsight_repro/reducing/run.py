"""Makes a repro smaller, in a process of its own (`start`)."""

from __future__ import annotations

import ast
import builtins
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax

from jaxsight.text.names import bound_in, read_in
from jaxsight_repro.checks.base import Check, InvalidCheck, parse
from jaxsight_repro.compat import configuration
from jaxsight_repro.emit.repro_file import CannotEmit
from jaxsight_repro.environment import current
from jaxsight_repro.failures import EXCEPTION, FINISHED, HANG_AFTER, RunFailure
from jaxsight_repro.reducing import children, loading
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.equations import reduction as equations
from jaxsight_repro.reducing.loading import LoadedRepro, Unloadable
from jaxsight_repro.reducing.statements import reduction as statements
from jaxsight_repro.reducing.task import (
    CannotReduce,
    Journal,
    NotReproduced,
    Reduced,
    Report,
    Task,
    fails,
)

_MEMORY = 8 << 30
"""Bytes that a candidate may use, a choice: two run at a time."""


def reduce(
    file: Path,
    out: Path,
    report: Report,
    *,
    check: str = "",
    jobs: int = 2,
    timeout: float = HANG_AFTER,
    state: str | None = None,
) -> Reduced:
    """Reduce a repro, and write the smallest program that fails in the same way.

    Args:
        file: the repro.
        out: the file to write.
        report: called with each step.
        check: the failure to keep; by default that of the file.
        jobs: the number of candidates that run at a time.
        timeout: seconds after which a candidate is a hang.
        state: the folder from which an interrupted reduction continues.

    Raises:
        CannotReduce: the file does not fail, or cannot be reduced.
    """
    kept = Path(state) if state else None
    children.adopt()
    children.hold_interrupts()
    with _temporary_folder(kept) as folder:
        children.set_temporary_folder(folder)
        try:
            task = _task(file, out, report, check, jobs, ChildLimits(timeout, _MEMORY), kept)
            return _reduced(task)
        finally:
            children.sweep()


def _temporary_folder(state: Path | None) -> tempfile.TemporaryDirectory[str]:
    """Make a folder for temporary files; remove that of the same reduction, if it was killed."""
    prefix = "jaxsight-reduce-"
    if state is not None:
        state.mkdir(parents=True, exist_ok=True)
        for abandoned in state.glob(f"{prefix}*"):
            shutil.rmtree(abandoned, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=prefix, dir=state, ignore_cleanup_errors=True)


def _task(
    file: Path,
    out: Path,
    report: Report,
    wanted: str,
    jobs: int,
    limits: ChildLimits,
    state: Path | None,
) -> Task:
    """Return what is reduced; run the file to see how it fails, unless a check is `wanted`."""
    baseline = configuration.at_start()
    try:
        check = parse(wanted)
        loaded = loading.read(file)
    except (InvalidCheck, Unloadable) as error:
        raise CannotReduce(str(error)) from error
    limits = ChildLimits(check.seconds or limits.seconds, limits.memory)
    report({"event": "progress", "stage": "run"})
    original: RunFailure | None = None
    if not check.text:
        original = fails(file, limits)
        if original.kind == FINISHED:
            help = "name the failure with --check, such as --check nan"
            raise CannotReduce(f"{file.name} does not fail", help)
        check = _own(check, loaded, original)
    unset = loading.configure(loaded)
    environment = current(configuration.changed(baseline))
    title = repr((loaded.text, check.text, jax.__version__, environment.python))
    journal = Journal(state, hashlib.sha256(title.encode()).hexdigest())
    return Task(loaded, out, check, limits, jobs, report, environment, original, journal, unset)


def _reduced(task: Task) -> Reduced:
    """Reduce the equations of a program, or where that cannot be done the file's statements."""
    if not task.check.of_text and loading.is_repro(task.loaded):
        try:
            return equations.reduce(task)
        except (CannotEmit, NotReproduced, Unloadable) as error:
            task.report({"event": "progress", "stage": "statements", "reason": str(error)})
    return statements.reduce(task)


def _is_of(demonstration: Sequence[str], failure: RunFailure) -> bool:
    """Return whether a demonstration raises an exception itself, and not the program in it."""
    own = failure.name.rpartition(".")[2]
    return own == "AssertionError" or any(f"raise {own}(" in line for line in demonstration)


def _own(check: Check, loaded: LoadedRepro, failure: RunFailure) -> Check:
    """Return the check of a file's own failure.

    An assertion is of the file's demonstration, which is then part of the check.
    """
    lines = loaded.demonstration
    if failure.kind != EXCEPTION or not lines or not _is_of(lines, failure):
        return check
    if failure.name == "AssertionError" and failure.message.startswith("NaN in "):
        check = parse("nan")  # whose programs have finite arguments
    tree = ast.parse("\n".join(lines))
    known = {"main", "inputs", "jax", "jnp", "np", *dir(builtins), *bound_in(tree)}
    return replace(check, demonstration=lines) if known.issuperset(read_in(tree)) else check
