"""Run a user's program under observation, and merge what was observed into its projects' files.

The program is the user's own command, unchanged: it has their terminal, and ends as it would. While
it runs, its signals are its own; what it was called with is merged every few seconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

from jaxsight.files.markers import is_marked
from jaxsight.recording import FOLDER, ROOT, TESTS, recorded_file
from jaxsight.recording.observing import log
from jaxsight.recording.recorded_file import Functions, RecordedCall, RecordedFileError

SITE = Path(__file__).parent / "observing" / "site"
"""The folder that a Python process finds `sitecustomize` in."""
_SECONDS = 2.0
"""Between two merges."""
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
_IGNORED = ("SIGINT", "SIGQUIT")
"""Signals of the keyboard, which the terminal sends to the program as well."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


Unwritten = Mapping[tuple[str, str], tuple[tuple[str, str], ...]]
"""Arguments that have no form, with the reasons, by file and name of the function."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of a program."""

    status: int
    """Its exit status, as a shell reports it."""
    functions: Mapping[Path, Functions]
    """What was recorded in this run, by the root of a project."""
    unwritten: Mapping[Path, Unwritten] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def project_root(start: Path) -> Path:
    """Return the nearest folder at or above one that marks a project; else the folder itself."""
    start = Path(os.path.realpath(start))
    return next((folder for folder in (start, *start.parents) if is_marked(folder)), start)


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
        variables = {**environment, FOLDER: name, ROOT: str(root)}
        if tests:
            variables[TESTS] = "1"
        paths = [str(SITE), *filter(None, [environment.get("PYTHONPATH")])]
        variables["PYTHONPATH"] = os.pathsep.join(paths)
        process = subprocess.Popen(list(command), env=variables)
        with _signals_of(process):
            merger = _Merger(folder, root)
            while True:
                try:
                    code = process.wait(_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    merger.merge()
        merger.merge()
        status = 128 - code if code < 0 else code
        return Recording(status, merger.functions, merger.unwritten, tuple(merger.problems))


@contextlib.contextmanager
def _signals_of(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave signals to a program: pass on those that only this process gets."""

    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before: dict[int, Any] = {}
    for name in (*_IGNORED, *_FORWARDED):
        number = getattr(signal, name, None)
        if number is not None:
            handler = forward if name in _FORWARDED else signal.SIG_IGN
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Merger:
    """Merges what processes logged into the files of projects, again whenever there is more."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.functions: dict[Path, Functions] = {}
        self.unwritten: dict[Path, dict[tuple[str, str], tuple[tuple[str, str], ...]]] = {}
        self.problems: dict[str, None] = {}
        self._folder = folder
        self._root = root
        self._size = 0
        self._earlier: dict[Path, Functions] = {}
        self._roots: dict[str, Path] = {}

    def merge(self) -> None:
        size = log.size(self._folder)
        if size == self._size:
            return
        self._size = size
        found: dict[Path, list[tuple[tuple[str, str], RecordedCall]]] = defaultdict(list)
        today = date.today().isoformat()
        self.unwritten = {}
        logged, errors = log.read(self._folder)
        self.problems |= {f"internal error in a call of {error}": None for error in errors[:5]}
        for call in logged:
            root = self._root_of(call.file)
            key = (self._root / call.file).relative_to(root).as_posix(), call.function
            if call.unwritten:
                self.unwritten.setdefault(root, {}).setdefault(key, call.unwritten)
            if call.text:
                recorded = RecordedCall(call.text, call.count, call.is_traced, today)
                found[root].append((key, recorded))
        for root, calls in found.items():
            functions = self.functions[root] = recorded_file.counted(calls)
            try:
                recorded_file.write(
                    root, recorded_file.merged(self._earlier_of(root), functions, root)
                )
            except OSError as error:
                path = recorded_file.path_in(root)
                self.problems[f"cannot write {path}: {error.strerror or error}"] = None

    def _root_of(self, file: str) -> Path:
        """Return the root of the project that a file belongs to."""
        folder = (self._root / file).parent
        known = self._roots.get(str(folder))
        if known is None:
            above = [folder, *folder.parents]
            inside = above[: above.index(self._root)]
            known = next(filter(is_marked, inside), self._root)
            self._roots[str(folder)] = known
        return known

    def _earlier_of(self, root: Path) -> Functions:
        """Return what the file of a project had when this run began."""
        if root not in self._earlier:
            try:
                self._earlier[root] = recorded_file.read(root)
            except RecordedFileError as error:
                self._earlier[root] = {}
                path = recorded_file.path_in(root)
                self.problems[f"{path} was replaced: {error}"] = None
        return self._earlier[root]


def program_environment(python: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which a program finds an interpreter and its tools first."""
    variables = dict(environ)
    if python:
        folder = str(Path(python).parent)
        variables["PATH"] = os.pathsep.join([folder, variables.get("PATH", os.defpath)])
    return variables


def with_python(command: Sequence[str], python: str | None) -> list[str]:
    """Return a command with the interpreter in place of `python`."""
    first, *rest = command
    return [python, *rest] if python and first in ("python", "python3") else [first, *rest]


def status_of(error: OSError) -> int:
    """Return the exit status of a shell for a program that does not start."""
    return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
