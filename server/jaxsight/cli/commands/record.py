"""Record example inputs from a run of the user's program: `jaxsight record`."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import rich_click as click

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.options import Python
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.parameters import Option, Positional
from jaxsight.cli.recorded_examples import WrittenTo, write_examples
from jaxsight.cli.recording.starting import program_environment, starting
from jaxsight.cli.recording.until_seen import (
    FILE_OPTION,
    OPTION,
    ProgressOutput,
    RecordCommand,
    RunRequest,
    run,
)
from jaxsight.features.recording.until_seen import TIME_LIMIT
from jaxsight.recording import merging, recorded_file, running
from jaxsight.recording.merging import Recording
from jaxsight.recording.program import project_root, root_of
from jaxsight.recording.recorded_file import Functions, RecordedFileError
from jaxsight.text.inert import one_line

Program = Annotated[
    list[str] | None,
    Positional(
        metavar="-- COMMAND [ARG]...",
        help="Program to run; without one, what was recorded before is listed.",
        show_default=False,
    ),
]

Write = Annotated[
    bool,
    Option("--write", help="Add what was recorded to the functions' docstrings."),
]

To = Annotated[
    WrittenTo,
    Option("--to", help="Where [cyan]--write[/cyan] adds examples."),
]

Only = Annotated[
    list[str] | None,
    Option(
        "--only",
        metavar="NAME",
        help="Functions to list and to write, as [cyan]loss[/cyan], [cyan]Model.*[/cyan] or "
        "[cyan]model.py:*[/cyan]. Repeatable.",
        show_default="all",
    ),
]

Limit = Annotated[int, Option("--limit", metavar="N", help="Functions to list at most.", min=0)]

UntilSeen = Annotated[
    bool,
    Option(
        OPTION,
        help="End the program once each function that uses JAX was called: of the files named "
        "before [cyan]--[/cyan], or of the script (of what it imports, if it has none), or of what "
        "the tests import.",
    ),
]

SeenFiles = Annotated[list[Path] | None, Option(FILE_OPTION, hidden=True)]

TimeLimit = Annotated[
    float,
    Option(
        "--time-limit",
        metavar="SECONDS",
        help="With [cyan]--until-seen[/cyan]: end the program after this time.",
        min=1,
    ),
]

ProgressForm = Annotated[
    ProgressOutput,
    Option(
        "--progress",
        help="With [cyan]--until-seen[/cyan]: print progress on stderr, or as lines of JSON on "
        "stdout.",
    ),
]

Tests = Annotated[bool, Option("--tests", help="Record functions in files of tests, too.")]


@click.command(cls=RecordCommand)
@command
async def record(
    program: Program = None,
    until_seen: UntilSeen = False,
    seen_files: SeenFiles = None,
    time_limit: TimeLimit = TIME_LIMIT,
    progress: ProgressForm = ProgressOutput.TEXT,
    write: Write = False,
    to: To = WrittenTo.DOCSTRING,
    only: Only = None,
    limit: Limit = 20,
    tests: Tests = False,
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
    """
    status = 0
    if until_seen and not program:
        raise CommandError(
            f"`{OPTION}` needs a program: `jaxsight record {OPTION} -- python train.py`"
        )
    if program:
        root = root_of(program, Path.cwd())
        request = RunRequest(program, tuple(seen_files or ()), root, time_limit, progress, tests)
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
        recording = _run(request, interpreter, environment)
    if not (until_seen and request.form is ProgressOutput.JSON):
        for line in merging.summary(recording, request.root, limit):
            Printer(stderr=True).print(f"jaxsight: {line}")
    return recording


def _run(request: RunRequest, interpreter: str | None, environment: dict[str, str]) -> Recording:
    """Run a program to its end."""
    command = running.with_python(request.program, interpreter)
    with starting(request.program):
        return running.record(command, request.root, environment, tests=request.tests)


def _chosen(functions: Functions, only: list[str] | tuple[str, ...]) -> Functions:
    """Return the functions that a pattern names, by name or by file and name."""
    if not only:
        return functions
    return {
        (file, name): calls
        for (file, name), calls in functions.items()
        if any(fnmatchcase(name, each) or fnmatchcase(f"{file}:{name}", each) for each in only)
    }
