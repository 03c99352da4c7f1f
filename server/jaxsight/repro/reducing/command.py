"""The command `reduce` of a process of `jaxsight repro`."""

from __future__ import annotations

import argparse
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
    try:
        report(reduce(parsed.file, parsed.out, options, report).record())
    except CannotReduce as error:
        report({"event": "error", "message": str(error), "help": error.help})
        return 1
    except KeyboardInterrupt:
        report({"event": "error", "message": "interrupted before anything was reduced", "help": ""})
        return 130
    finally:
        children.sweep()
    return 0
