"""The start of a process of `jaxsight repro`, with the user's Python.

`run KIND CASE [--nan] -- ARGUMENT…` runs the user's program under capture, with its own standard
streams. The other commands (`emit`, `emit-dump`, `reduce`) take a file or folder, the file to write
and options as a JSON object, and print one JSON object per line on standard output: events named
`progress`, `done` or `error`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from jaxsight_repro.failures import NoRepro

Event = dict[str, Any]


def report(event: Event) -> None:
    """Print an event for whoever started this process."""
    sys.stdout.write(json.dumps(event, default=str) + "\n")
    sys.stdout.flush()


def run(arguments: list[str]) -> int:
    """Run a user's program under capture."""
    from jaxsight_repro.capturing.case import ProgramKind
    from jaxsight_repro.capturing.run import run_program

    options, rest = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    kind, folder, *flags = options
    return run_program(Path(folder), cast(ProgramKind, kind), rest, finds_nan="--nan" in flags)


def emit(case: Path, out: Path, died: dict[str, Any] | None = None, check: str = "") -> Event:
    """Write the repro of a case, with the variables that the program had."""
    from jaxsight_repro.capturing.case import INFO, read_json

    info = read_json(case, INFO)
    os.environ.update(info.get("environment", {}).get("variables", {}))
    from jaxsight_repro.emit import from_case
    from jaxsight_repro.failures import RunFailure

    failure = RunFailure(**died) if died else None
    return asdict(from_case.emit(case, out, died=failure, check=check))


def emit_dump(dump: Path, out: Path, check: str, timeout: float) -> Event:
    """Write the repro of a dumped program."""
    from jaxsight_repro.dumps.choosing import ChosenDump
    from jaxsight_repro.dumps.emit import emit
    from jaxsight_source.stablehlo.program import UnreadableProgram

    try:
        return asdict(emit(ChosenDump(dump), out, check=check, timeout=timeout))
    except (UnreadableProgram, OSError) as error:
        raise NoRepro(str(error)) from error


def reduce(file: Path, out: Path, **options: Any) -> Event:
    """Reduce a repro."""
    from jaxsight_repro.reducing.run import reduce

    return asdict(reduce(file, out, report, **options))


COMMANDS: dict[str, Callable[..., Event]] = {"emit": emit, "emit-dump": emit_dump, "reduce": reduce}


def main(arguments: list[str]) -> int:
    """Run the command that the first argument names; return the exit status."""
    command, *rest = arguments
    if command == "run":
        return run(rest)
    source, out, options = rest
    try:
        event = COMMANDS[command](Path(source), Path(out), **json.loads(options))
    except NoRepro as error:
        report({"event": "error", "message": str(error), "help": error.help})
        return 1
    except KeyboardInterrupt:
        report({"event": "error", "message": "interrupted", "help": ""})
        return 130  # as shells: 128 + SIGINT
    report({"event": "done", **event})
    return 0
