"""Record example inputs from a run of the user's program: `jaxsight record`.

With `--until-seen`, it runs until functions were seen, with progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import rich_click as click

from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import INTERRUPTED, command
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.parameters import Command, Python
from jaxsight.cli.recorded_examples import WrittenTo, write_examples
from jaxsight.cli.user_python import program_environment, starting
from jaxsight.features.recording import programs
from jaxsight.features.recording.programs import Key
from jaxsight.features.recording.until_called import (
    TIME_LIMIT,
    Run,
    RunCoverage,
    RunOutcome,
    run_until_called,
)
from jaxsight.recording import merging, recorded_file, running
from jaxsight.recording.merging import Recording
from jaxsight.recording.observing.functions import is_test
from jaxsight.recording.recorded_file import Functions, RecordedFileError
from jaxsight.recording.running import program, project_root, root_of
from jaxsight.text import units
from jaxsight.text.inert import one_line

OPTION = "--until-seen"
FILE_OPTION = "--seen-file"
_NAMED = 5
"""Functions that a line names, a choice: more would wrap."""


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


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for."""

    program: list[str]
    files: tuple[Path, ...]
    """The files whose functions are to be seen; none for those that the program implies."""
    root: Path
    limit: float
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
    printed = _Printed(request.limit)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, stop.set)
    with starting(request.program):
        outcome = await run_until_called(
            run, printed.progress, limit=request.limit, stop=stop, output=(None, None)
        )
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
    if keys := programs.functions_of(root, files or programs.files_reached(ran, root)):
        return root, keys
    if files:
        names = ", ".join(one_line(str(file)) for file in files)
        raise CommandError(f"no function in {names} uses JAX and takes arguments")
    raise CommandError(
        "no function that the program names uses JAX; name files: "
        f"`jaxsight record {OPTION} model.py -- …`"
    )


class _Printed:
    """Prints the progress of a run."""

    def __init__(self, limit: float) -> None:
        self._printer = Printer(stderr=True)
        self._limit = limit
        self._start = time.monotonic()

    def progress(self, seen: RunCoverage) -> None:
        """Print which functions are missing."""
        if seen.missing:
            count = len(seen.missing) + len(seen.with_arrays) + len(seen.without_arrays)
            done = f"{count - len(seen.missing)} of {units.count(count, 'function')} seen"
            self._say(f"{done}; missing: {_listed(seen.missing)}")

    def end(self, outcome: RunOutcome) -> None:
        """Print why the run is over."""
        seen = outcome.seen
        after = f"after {time.monotonic() - self._start:.1f} s"
        status = outcome.recording.status
        endings = {
            "seen": f"all functions seen; the program was ended {after}",
            "ended": f"the program ended by itself {after} (exit status {status})",
            "time limit": f"the program was ended at the time limit of {self._limit:g} s",
            "stopped": f"the program was stopped {after}",
        }
        self._say(endings[outcome.ending])
        if outcome.replaced:
            names = one_line(", ".join(outcome.replaced))
            self._say(f"not installed, and without effect in this run: {names}")
        if seen.missing:
            self._say(f"not called: {_listed(seen.missing)}")
        if seen.without_arrays:
            self._say(f"called without arrays: {_listed(seen.without_arrays)}")

    def _say(self, text: str) -> None:
        self._printer.print(f"jaxsight: {text}")


def _listed(keys: Sequence[Key]) -> str:
    """Return the first names on one line; files are named if there are several."""
    several = len({file for file, _ in keys}) > 1
    names = [f"{file}:{name}" if several else name for file, name in keys]
    return one_line(units.some(names, _NAMED))


@click.command(cls=RecordCommand)
@command
async def record(
    program: list[str] | None = None,
    *,
    until_seen: bool = False,
    seen_files: list[Path] | None = None,
    time_limit: float = TIME_LIMIT,
    write: bool = False,
    to: WrittenTo = WrittenTo.DOCSTRING,
    only: list[str] | None = None,
    limit: int = 20,
    tests: bool = False,
    python: Python = None,
) -> int:
    """Run a program, and use what its functions are called with as their example inputs.

    The program runs unmodified, with its own input, output and exit status. Shapes, dtypes,
    pytrees, shardings and static arguments go to [bold].jaxsight/recorded.json[/bold] in the
    project; values of arrays do not. Editors and all commands use them for functions that have no
    other example inputs.

    With [cyan]--until-seen[/cyan], the program is ended, with all that it started, once the
    functions of a file were called. The exit status is 0 if all were, and 1 otherwise.

    [bold]Examples[/bold]

        jaxsight record -- python train.py --epochs 1
        jaxsight record -- pytest tests
        jaxsight record --until-seen -- python train.py
        jaxsight record --until-seen model.py -- pytest tests/test_model.py
        jaxsight record
        jaxsight record --write --only 'model.py:*'

    Args:
        program (-- COMMAND [ARG]...): Program to run; without one, what was recorded before is
            listed.
        until_seen: End the program once each function that uses JAX was called: of the files named
            before [cyan]--[/cyan], or of the script (of what it imports, if it has none), or of
            what the tests import.
        seen_files (--seen-file):
        time_limit (SECONDS>=1): With [cyan]--until-seen[/cyan]: end the program after this time.
        write: Add what was recorded to the functions' docstrings.
        to: Where [cyan]--write[/cyan] adds examples.
        only (NAME): Functions to list and to write, as [cyan]loss[/cyan], [cyan]Model.*[/cyan] or
            [cyan]model.py:*[/cyan]. Repeatable. [default: all]
        limit (N>=0): Functions to list at most.
        tests: Record functions in files of tests, too.
    """
    status = 0
    if until_seen and not program:
        raise CommandError(
            f"`{OPTION}` needs a program: `jaxsight record {OPTION} -- python train.py`"
        )
    if program:
        root = root_of(program, Path.cwd())
        request = RunRequest(program, tuple(seen_files or ()), root, time_limit, tests)
        recording = await _ran(request, python, limit, until_seen=until_seen)
        status = recording.status
        functions = {
            project: _chosen(functions, only or ())
            for project, functions in recording.functions.items()
        }
    else:
        root = project_root(Path.cwd())
        about = f"cannot read {recorded_file.path_in(root)}: "
        with failing_on(RecordedFileError, about=about):
            functions = {root: _chosen(recorded_file.read(root), only or ())}
        if not write and not functions[root]:
            hint = "run a program: `jaxsight record -- python train.py`"
            raise CommandError(f"nothing is recorded; {hint}")
        for line in merging.listed(functions[root], limit) if not write else ():
            Printer().print(line)
    if write:
        for project, chosen in functions.items():
            _write(project, chosen, to, is_named=bool(only))
    return status


def _write(root: Path, functions: Functions, place: WrittenTo, *, is_named: bool) -> None:
    """Write the examples of functions; those that JAX did not trace have to be named."""
    printer = Printer(stderr=True)
    traced = {key: calls for key, calls in functions.items() if is_named or calls[0].is_traced}
    for line in write_examples(root, traced, place):
        printer.print(line)
    if untraced := [name for _, name in functions.keys() - traced.keys()]:
        names = one_line(", ".join(sorted(untraced)))
        printer.print(f"not added, as JAX did not trace them (name them with `--only`): {names}")


async def _ran(
    request: RunRequest, python: str | None, limit: int, *, until_seen: bool
) -> Recording:
    """Run a program, and print what was recorded; its status is that of the command."""
    interpreter, environment = program_environment(python, request.root)
    if until_seen:
        status, outcome = await run(request, interpreter, environment)
        recording = replace(outcome.recording, status=status)
    else:
        command = running.with_python(request.program, interpreter)
        with starting(request.program):
            recording = running.record(command, request.root, environment, tests=request.tests)
    for line in merging.summary(recording, request.root, limit):
        Printer(stderr=True).print(f"jaxsight: {line}")
    return recording


def _chosen(functions: Functions, only: list[str] | tuple[str, ...]) -> Functions:
    """Return the functions that a pattern names, by name or by file and name."""
    if not only:
        return functions
    return {
        (file, name): calls
        for (file, name), calls in functions.items()
        if any(fnmatchcase(name, each) or fnmatchcase(f"{file}:{name}", each) for each in only)
    }
