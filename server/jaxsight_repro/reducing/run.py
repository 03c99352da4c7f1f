"""The command `reduce` of a process of `jaxsight repro`: makes a repro smaller."""

from __future__ import annotations

import argparse
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
from jaxsight_repro.checks import parsing
from jaxsight_repro.checks.base import Check, InvalidCheck
from jaxsight_repro.compat import configuration
from jaxsight_repro.emit.repro_file import CannotEmit
from jaxsight_repro.environment import current
from jaxsight_repro.failures import EXCEPTION, FINISHED, HANG_AFTER, RunFailure
from jaxsight_repro.reducing import children, loading
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.equations import reduction as equations
from jaxsight_repro.reducing.journal import Journal
from jaxsight_repro.reducing.loading import LoadedRepro, Unloadable
from jaxsight_repro.reducing.statements import reduction as statements
from jaxsight_repro.reducing.task import CannotReduce, NotReproduced, Reduced, Report, Task, fails


def run(arguments: Sequence[str], report: Report) -> int:
    """Reduce a file, and report the result; return the exit status."""
    parser = argparse.ArgumentParser(prog="reduce")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--check", default="", help="the failure to keep; by default the file's")
    parser.add_argument("--jobs", type=int, default=2, help="candidates that run at a time")
    parser.add_argument("--timeout", type=float, default=HANG_AFTER, help="seconds of a hang")
    parser.add_argument("--memory", type=int, default=8 << 30, help="bytes of a candidate")
    parser.add_argument("--state", type=Path, help="from where an interrupted one continues")
    options = parser.parse_args(arguments)
    children.adopt()
    children.hold_interrupts()
    with _temporary_folder(options.state) as folder:
        children.set_temporary_folder(folder)
        try:
            report(_reduced(options, report).record())
        except CannotReduce as error:
            report({"event": "error", "message": str(error), "help": error.help})
            return 1
        except KeyboardInterrupt:
            message = "interrupted before anything was reduced"
            report({"event": "error", "message": message, "help": ""})
            return 130
        finally:
            children.sweep()
    return 0


def _temporary_folder(state: Path | None) -> tempfile.TemporaryDirectory[str]:
    """Make a folder for temporary files; remove that of the same reduction, if it was killed."""
    prefix = "jaxsight-reduce-"
    if state is not None:
        state.mkdir(parents=True, exist_ok=True)
        for abandoned in state.glob(f"{prefix}*"):
            shutil.rmtree(abandoned, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=prefix, dir=state, ignore_cleanup_errors=True)


def _reduced(options: argparse.Namespace, report: Report) -> Reduced:
    """Reduce a repro, and write the smallest program that fails in the same way.

    Raises:
        CannotReduce: the file does not fail, or cannot be reduced.
    """
    baseline = configuration.at_start()
    file: Path = options.file
    try:
        check = parsing.parse(options.check)
        loaded = loading.read(file)
    except (InvalidCheck, Unloadable) as error:
        raise CannotReduce(str(error)) from error
    limits = ChildLimits(check.seconds or options.timeout, options.memory)
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
    journal = Journal(options.state, hashlib.sha256(title.encode()).hexdigest())
    out, jobs = options.out, options.jobs
    task = Task(loaded, out, check, limits, jobs, report, environment, original, journal, unset)
    if not check.of_text and loading.is_repro(loaded):
        try:
            return equations.reduce(task)
        except (CannotEmit, NotReproduced, Unloadable) as error:
            report({"event": "progress", "stage": "statements", "reason": str(error)})
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
        check = parsing.parse("nan")  # whose programs have finite arguments
    tree = ast.parse("\n".join(lines))
    known = {"main", "inputs", "jax", "jnp", "np", *dir(builtins), *bound_in(tree)}
    return replace(check, demonstration=lines) if known.issuperset(read_in(tree)) else check
