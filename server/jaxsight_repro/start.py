"""The start of a process of `jaxsight repro`, with the user's Python.

`run KIND CASE [--nan] -- ARGUMENT…` runs the user's program under capture, with its own standard
streams. The other commands print one JSON object per line on standard output: events named
`progress`, `done` or `error`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import cast


def report(event: dict[str, object]) -> None:
    """Print an event for whoever started this process."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def run(arguments: list[str]) -> int:
    """Run a user's program under capture."""
    from jaxsight_repro.capturing.case import ProgramKind
    from jaxsight_repro.capturing.run import run_program

    options, rest = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    kind, folder, *flags = options
    return run_program(Path(folder), cast(ProgramKind, kind), rest, finds_nan="--nan" in flags)


def emit(arguments: list[str]) -> int:
    """Write the repro of a case, with the variables that the program had."""
    from jaxsight_repro.capturing import case

    info = case.read_json(Path(arguments[0]), case.INFO)
    os.environ.update(info.get("environment", {}).get("variables", {}))
    from jaxsight_repro.emit.from_case import emit
    from jaxsight_repro.emit.repro_file import CannotEmit
    from jaxsight_repro.failures import RunFailure

    folder, out, *rest = arguments
    options = json.loads(rest[0]) if rest else {}
    died = RunFailure.of_record(options["died"]) if options.get("died") else None
    choices = {name: options[name] for name in ("anonymous", "check") if name in options}
    try:
        emitted = emit(Path(folder), Path(out), died=died, **choices)
    except CannotEmit as error:
        report({"event": "error", "message": str(error)})
        return 1
    report({"event": "done", **emitted.record()})
    return 0


def emit_dump(arguments: list[str]) -> int:
    """Write the repro of a dumped program."""
    from jaxsight_repro.dumps.choosing import ChosenDump
    from jaxsight_repro.dumps.emit import emit
    from jaxsight_repro.emit.repro_file import CannotEmit
    from jaxsight_source.stablehlo import UnreadableProgram

    dump, out, options = arguments
    try:
        emitted = emit(ChosenDump(Path(dump)), Path(out), **json.loads(options))
    except (CannotEmit, UnreadableProgram, OSError) as error:
        report({"event": "error", "message": str(error)})
        return 1
    report({"event": "done", **emitted.record()})
    return 0


def reduce(arguments: list[str]) -> int:
    """Reduce a repro."""
    from jaxsight_repro.reducing.run import run

    return run(arguments, report)


COMMANDS = {"run": run, "emit": emit, "emit-dump": emit_dump, "reduce": reduce}


def main(arguments: list[str]) -> int:
    """Run the command that the first argument names; return the exit status."""
    command, *rest = arguments
    return COMMANDS[command](rest)
