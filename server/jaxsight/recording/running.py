"""Run a user's program under observation, and merge what was observed into its projects' files.

The program is the user's own command, unchanged: it has their terminal, and ends as it would. While
it runs, its signals are its own; what it was called with is merged every few seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from jaxsight.files import reading
from jaxsight.files.ownership import is_everybodys
from jaxsight.files.reading import is_marked
from jaxsight.recording import (
    FOLDER,
    PROFILE,
    PROFILE_FUNCTION,
    PROFILE_OUTCOME,
    PROFILE_STEPS,
    ROOT,
    TESTS,
    ProfileOutcome,
)
from jaxsight.recording.merging import Merger, Recording
from jaxsight.recording.observing.functions import is_test
from jaxsight.text.magics import NOTEBOOK

SITE = Path(__file__).parent / "observing" / "site"
"""The folder that a Python process finds `sitecustomize` in."""
RUN_NOTEBOOK = SITE.parent / "run_notebook.py"
"""Runs the cells of a notebook."""
_SECONDS = 2.0
"""Between two merges: what an editor shows of a running program is as old."""
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
_IGNORED = ("SIGINT", "SIGQUIT")
"""Signals of the keyboard, which the terminal sends to the program as well."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as a shell reports it (POSIX, "Exit Status")


def record(
    command: Sequence[str], root: Path, environment: Mapping[str, str], *, tests: bool = False
) -> Recording:
    """Run a command, and record what functions of a project are called with.

    Args:
        command: the program with its arguments.
        root: the folder whose functions are recorded.
        environment: the program's variables, to which those of the recording are added.
        tests: whether functions in files of tests are recorded, too.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    root = Path(os.path.realpath(root))
    with tempfile.TemporaryDirectory(prefix="jaxsight-recording-") as name:
        folder = Path(name)
        variables = recorded_environment(environment, folder, root, tests=tests)
        merger = Merger(folder, root)
        status = run(command, variables, merger.merge)
        merger.merge()
        return merger.result(status)


def run(
    command: Sequence[str], variables: Mapping[str, str], meanwhile: Callable[[], object]
) -> int:
    """Run a command to its end, and return its exit status as a shell would.

    Args:
        command: the program with its arguments.
        variables: all of its environment.
        meanwhile: is called every few seconds.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    process = subprocess.Popen(list(command), env=variables)
    with _signals_of(process):
        while True:
            try:
                code = process.wait(_SECONDS)
                break
            except subprocess.TimeoutExpired:
                meanwhile()
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _signals_of(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave signals to a program: pass on those that only this process gets."""

    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before: dict[int, Any] = {}
    for name in (*_IGNORED, *_FORWARDED):
        if (number := getattr(signal, name, None)) is not None:
            handler = forward if name in _FORWARDED else signal.SIG_IGN
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def recorded_environment(
    environment: Mapping[str, str], folder: Path, root: Path, *, tests: bool
) -> dict[str, str]:
    """Return a program's variables with those that let its processes log into a folder."""
    ours = {FOLDER: str(folder), ROOT: str(root), **({TESTS: "1"} if tests else {})}
    return observed_environment(environment, ours)


def observed_environment(environment: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return a program's variables with some of ours, so that its processes are observed."""
    variables = {**environment, **ours}
    paths = [str(SITE), *filter(None, [environment.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    return variables


def program_environment(python: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which a program finds an interpreter and its tools first."""
    variables = dict(environ)
    if python:
        folder = str(Path(python).parent)
        variables["PATH"] = os.pathsep.join([folder, variables.get("PATH", os.defpath)])
    return variables


def with_python(command: Sequence[str], python: str | None) -> list[str]:
    """Return a command with the interpreter in place of `python`; it also runs notebooks."""
    first, *rest = command
    if first.endswith(NOTEBOOK):
        first, rest = "python3", [first, *rest]
    if rest and rest[0].endswith(NOTEBOOK):
        rest = [str(RUN_NOTEBOOK), *rest]
    return [python, *rest] if python and first in ("python", "python3") else [first, *rest]


def status_of(error: OSError) -> int:
    """Return the exit status of a shell for a program that does not start."""
    return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


# Run a user's program, and have JAX profile some steps of it (`observing/profiled.py`).


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """What came of a program that was to be profiled."""

    status: int
    function: str = ""
    """The function whose calls were steps; empty if there was no profile."""
    steps: int = 0
    ended_early: bool = False
    reason: str = ""
    """Why there is no profile."""


def profile(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    steps: int,
    function: str = "",
) -> ProfiledRun:
    """Run a command, and profile some of its steps.

    Args:
        command: the program with its arguments.
        folder: an empty folder that the profile is written to.
        environment: the program's variables.
        steps: the number of steps.
        function: the name of the function whose calls are steps; by default the first that JAX
            compiles and that is called four times.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    variables = observed_environment(
        environment,
        {PROFILE: str(folder), PROFILE_STEPS: str(steps), PROFILE_FUNCTION: function},
    )
    status = run(command, variables, lambda: None)
    try:
        found = json.loads(reading.text(folder / PROFILE_OUTCOME, reading.SMALL))
    except (reading.UnreadableError, ValueError):
        found = {}
    match found.get("outcome"):
        case ProfileOutcome.DONE | ProfileOutcome.ENDED_EARLY as outcome:
            steps_done = found.get("steps")
            return ProfiledRun(
                status,
                str(found.get("function", "")),
                steps_done if isinstance(steps_done, int) else 0,
                outcome == ProfileOutcome.ENDED_EARLY,
            )
        case ProfileOutcome.FAILED:
            return ProfiledRun(status, reason=str(found.get("message", "")))
        case ProfileOutcome.BEGUN:
            reason = "the program ended without running its exit handlers"
            return ProfiledRun(status, reason=reason)
    called = f"`{function}`" if function else "no function compiled by JAX"
    was = "was not called" if function else "was called"
    reason = f"{called} {was} four times outside of others (Python 3.12 or later is needed)"
    return ProfiledRun(status, reason=reason)


def new_folder(root: Path) -> Path:
    """Create and return the folder for the profiles of a project."""
    folder = root / ".jaxsight" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROFILE_OUTCOME).unlink(missing_ok=True)
    return Path(os.path.realpath(folder))


# What a command runs: the file of its script, its module or its tests, and the project of that.

_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?|py(\.exe)?", re.IGNORECASE)
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python that the next word belongs to."""
_PYTEST = ("pytest", "py.test")
_ENDINGS = (".py", ".ipynb")
_MOST_TESTS = 200
"""Files of tests that are looked at in a folder, a choice: more would delay the program's start."""


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """What a command runs."""

    files: tuple[Path, ...] = ()
    """The files that run, or that have the tests; none if they are not known."""
    is_tests: bool = False
    folder: Path | None = None
    """The folder that its modules are imported from, if its files are in packages."""


def program(command: Sequence[str], folder: Path) -> StartedProgram:
    """Return what a command runs that is started in a folder."""
    words = list(command)
    name = os.path.basename(words[0])  # noqa: PTH119 - plain text
    if name in _PYTEST:
        return _tests(words[1:], folder)
    if words[0].endswith(_ENDINGS):
        return _files([words[0]], folder)
    if not _PYTHON.fullmatch(name):
        return StartedProgram()
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        if rest[0].startswith("-m"):
            rest = ["-m", rest[0][2:], *rest[1:]]
            break
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    match rest:
        case ["-m", "pytest", *arguments]:
            return _tests(arguments, folder)
        case ["-m", module, *_]:
            path = folder.joinpath(*module.split("."))
            for file in (path.with_suffix(".py"), path / "__main__.py"):
                if reading.is_file(file):
                    return StartedProgram((file,), folder=folder)
            return StartedProgram()
        case [script, *_] if not script.startswith("-"):
            return _files([script], folder)
    return StartedProgram()


def root_of(command: Sequence[str], folder: Path) -> Path:
    """Return the root of the project whose functions a command runs.

    It is that of the folder which the command is started in, if the program is in it, and else the
    program's own.
    """
    started_in = project_root(folder)
    ran = program(command, folder)
    if not ran.files:
        return started_in
    file = Path(os.path.realpath(ran.files[0]))
    own = project_root(file.parent)
    is_marked_best = is_marked(started_in) or not is_marked(own)
    if file.is_relative_to(started_in) and is_marked_best and not _is_of_many(started_in):
        return started_in
    if ran.folder is not None and not is_marked(own):
        return Path(os.path.realpath(ran.folder))
    return own


def _is_of_many(folder: Path) -> bool:
    """Return whether a folder has many projects, so that it is none itself."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where there is none
    return not is_marked(folder) and (folder in (home, *home.parents) or is_everybodys(folder))


def project_root(start: Path) -> Path:
    """Return the nearest folder at or above one that marks a project; else the folder itself."""
    start = Path(os.path.realpath(start))
    for folder in (start, *start.parents):
        if is_marked(folder) and (folder == start or not is_everybodys(folder)):
            return folder
    return start


def _files(names: Sequence[str], folder: Path) -> StartedProgram:
    return StartedProgram(tuple(filter(reading.is_file, (folder / name for name in names))))


def _tests(arguments: Sequence[str], folder: Path) -> StartedProgram:
    words = [word.partition("::")[0] for word in arguments if not word.startswith("-")]
    paths = [folder / word for word in words if reading.exists(folder / word)] or [folder]
    files = [file for path in paths for file in islice(_test_files(path), _MOST_TESTS)]
    return StartedProgram(tuple(files), is_tests=True)


def _test_files(path: Path) -> Iterator[Path]:
    if not reading.is_folder(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        own = Path(folder)
        if reading.is_file(own / "pyvenv.cfg"):
            folders.clear()
            continue
        yield from (own / name for name in sorted(names) if name.endswith(".py") and is_test(name))
