"""`jaxsight record --until-seen`: run a program until functions were seen, with progress."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rich_click as click

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.execution import INTERRUPTED
from jaxsight.cli.output.printing import Printer, print_json_line
from jaxsight.cli.parameters import Command
from jaxsight.features.recording import programs
from jaxsight.features.recording.programs import Key
from jaxsight.features.recording.until_seen import Run, RunOutcome, SeenFunctions, run_until_seen
from jaxsight.recording import running
from jaxsight.recording.observing.functions import is_test
from jaxsight.recording.program import program, project_root
from jaxsight.text import units
from jaxsight.text.inert import one_line

OPTION = "--until-seen"
FILE_OPTION = "--seen-file"
_NAMED = 5
"""Functions that a line names, a choice: more would wrap."""
_STDERR = 2


class RecordCommand(Command):
    """Reads `--until-seen FILE… -- COMMAND…`, which options have no form for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn the files between the option and `--` into options of their own."""
        if OPTION in args and "--" in args[args.index(OPTION) :]:
            at = args.index(OPTION) + 1
            end = at
            while args[end] != "--" and not args[end].startswith("-"):
                end += 1
            named = [f"{FILE_OPTION}={file}" for file in args[at:end]]
            args = [*args[:at], *named, *args[end:]]
        return super().parse_args(ctx, args)


class ProgressOutput(enum.StrEnum):
    """How progress is printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for."""

    program: list[str]
    files: tuple[Path, ...]
    """The files whose functions are to be seen; none for those that the program implies."""
    root: Path
    limit: float
    form: ProgressOutput
    tests: bool


async def run(
    request: RunRequest, python: str | None, environment: Mapping[str, str]
) -> tuple[int, RunOutcome]:
    """Run a program until functions are seen; return the exit status, and what came of it.

    Raises:
        CommandError: there is nothing to see, or the program does not start.
    """
    root, keys = _wanted(request)
    command = running.with_python(request.program, python)
    tests = request.tests or any(is_test(os.path.basename(file)) for file, _ in keys)  # noqa: PTH119
    run = Run(command, Path.cwd(), environment, root, keys, tests)
    printed = _Printed(request.form, request.limit)
    printed.start(run)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, stop.set)
    output = (_STDERR if request.form is ProgressOutput.JSON else None, None)
    try:
        outcome = await run_until_seen(
            run, printed.progress, limit=request.limit, stop=stop, output=output
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"cannot run {one_line(request.program[0])}: {reason}") from error
    printed.end(outcome)
    status = FOUND if outcome.seen.missing else 0
    return (INTERRUPTED if outcome.ending == "stopped" else status), outcome


def _wanted(request: RunRequest) -> tuple[Path, tuple[Key, ...]]:
    """Return the root of the project and the functions to see.

    Raises:
        CommandError: there are none.
    """
    ran = program(request.program, Path.cwd())
    root, files = request.root, list(request.files)
    for file in files:
        if not file.is_file():
            raise CommandError(f"{one_line(str(file))}: no such file")
    if files and not Path(os.path.realpath(files[0])).is_relative_to(root):
        root = project_root(Path(os.path.realpath(files[0])).parent)
    named = bool(files)
    files = files or programs.files_reached(ran, root)
    keys = programs.functions_of(root, files)
    if not keys:
        if named:
            names = ", ".join(one_line(str(file)) for file in files)
            raise CommandError(f"no function in {names} uses JAX and takes arguments")
        raise CommandError(
            "no function that the program names uses JAX; name files: "
            f"`jaxsight record {OPTION} model.py -- …`"
        )
    return root, keys


class _Printed:
    """Prints the progress of a run."""

    def __init__(self, form: ProgressOutput, limit: float) -> None:
        self._is_json = form is ProgressOutput.JSON
        self._printer = Printer(stderr=True)
        self._limit = limit
        self._start = time.monotonic()

    def start(self, run: Run) -> None:
        if self._is_json:
            print_json_line(
                {
                    "event": "start",
                    "command": list(run.command),
                    "root": str(run.root),
                    "functions": _names(run.wanted),
                    "time_limit": self._limit,
                }
            )

    def progress(self, seen: SeenFunctions) -> None:
        """Print which functions are missing."""
        if self._is_json:
            print_json_line({"event": "progress", **_as_json(seen)})
        elif seen.missing:
            count = len(seen.missing) + len(seen.with_arrays) + len(seen.without_arrays)
            done = f"{count - len(seen.missing)} of {units.count(count, 'function')} seen"
            self._say(f"{done}; missing: {_listed(seen.missing)}")

    def end(self, outcome: RunOutcome) -> None:
        """Print why the run is over."""
        seen = outcome.seen
        if self._is_json:
            unwritten = {
                f"{file}:{name}": dict(reasons)
                for functions in outcome.recording.unwritten.values()
                for (file, name), reasons in functions.items()
            }
            end = {
                "event": "end",
                "reason": outcome.ending,
                "exit_status": outcome.recording.status if outcome.ending == "ended" else None,
                **_as_json(seen),
                "unwritten": unwritten,
                "not_installed": list(outcome.replaced),
                "problems": list(outcome.recording.problems),
            }
            print_json_line(end)
            return
        seconds = f"{time.monotonic() - self._start:.1f} s"
        match outcome.ending:
            case "seen":
                self._say(f"all functions seen; the program was ended after {seconds}")
            case "ended":
                status = outcome.recording.status
                self._say(f"the program ended by itself after {seconds} (exit status {status})")
            case "time limit":
                self._say(f"the program was ended at the time limit of {self._limit:g} s")
            case "stopped":
                self._say(f"the program was stopped after {seconds}")
        if outcome.replaced:
            names = one_line(", ".join(outcome.replaced))
            self._say(f"not installed, and without effect in this run: {names}")
        if seen.missing:
            self._say(f"not called: {_listed(seen.missing)}")
        if seen.without_arrays:
            self._say(f"called without arrays: {_listed(seen.without_arrays)}")

    def _say(self, text: str) -> None:
        self._printer.print(f"jaxsight: {text}")


def _as_json(seen: SeenFunctions) -> dict[str, list[str]]:
    return {
        "seen": _names(seen.with_arrays),
        "without_arrays": _names(seen.without_arrays),
        "missing": _names(seen.missing),
    }


def _names(keys: Sequence[Key]) -> list[str]:
    return [f"{file}:{name}" for file, name in keys]


def _listed(keys: Sequence[Key]) -> str:
    """Return the first names on one line; files are named if there are several."""
    several = len({file for file, _ in keys}) > 1
    names = [f"{file}:{name}" if several else name for file, name in keys]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return one_line(", ".join(names[:_NAMED]) + more)
