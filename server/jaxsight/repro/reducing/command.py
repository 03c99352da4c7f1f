"""The command `reduce` of a process of `jaxsight repro`."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxsight.repro.reducing import children, interrupts
from jaxsight.repro.reducing.options import CannotReduce, Options, Report
from jaxsight.repro.reducing.run import reduce


def run(arguments: Sequence[str], report: Report) -> int:
    """Reduce a file; return the exit status."""
    default = Options()
    parser = argparse.ArgumentParser(prog="reduce")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--check", default="")
    parser.add_argument("--jobs", type=int, default=default.jobs)
    parser.add_argument("--timeout", type=float, default=default.timeout)
    parser.add_argument("--memory", type=int, default=default.memory)
    parser.add_argument("--state", type=Path)
    parsed = parser.parse_args(arguments)
    options = Options(parsed.check, parsed.jobs, parsed.timeout, parsed.memory, parsed.state)
    children.adopt()
    interrupts.hold()
    with _temporary_folder(parsed.state) as folder:
        children.set_temporary_folder(folder)
        try:
            return _reduced(parsed.file, parsed.out, options, report)
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


def _reduced(file: Path, out: Path, options: Options, report: Report) -> int:
    """Reduce a file and report the result; return the exit status."""
    try:
        report(reduce(file, out, options, report).record())
    except CannotReduce as error:
        report({"event": "error", "message": str(error), "help": error.help})
        return 1
    except KeyboardInterrupt:
        report({"event": "error", "message": "interrupted before anything was reduced", "help": ""})
        return 130
    return 0
