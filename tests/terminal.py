"""Run commands as a terminal does, in the process of the tests.

`jaxsight` runs a command here, as the resident server does (`jaxsight.cli.resident`): one that
traces gets the session of an earlier command with the same folder, options and environment, whose
tracer and compiler still run. `process` runs the same command as a process of its own, for tests
that are about the process; `tests/cli/test_processes.py` compares the two for each command.

Two fixtures, which a `conftest.py` imports, keep the sessions of a module: `sessions` ends them
after its last test, and `tmp_path` has the same path for all its tests, since a session belongs to
a folder; it is empty when a test begins. Without them, each command has a session of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import TextIOWrapper
from pathlib import Path

import pytest

from jaxsight.cli.execution import THIS_PROCESS
from jaxsight.cli.resident import endpoint
from jaxsight.cli.resident.session_pool import SessionPool
from tests.cli.published import hold

SERVER = Path(__file__).parents[1] / "server"
COMMAND = (sys.executable, "-m", "jaxsight")
PATIENCE = 300.0
"""Seconds until a process is killed: ten times what the slowest one takes on a busy machine."""

_IDLE = 3600.0
"""Seconds until a session ends its processes; longer than a module takes."""
_ENVIRONMENTS = 2
"""Environments with sessions, the last used ones: each may have three with a tracer each."""


def jaxsight(
    *arguments: str, cwd: Path, input: str | None = None, fresh: bool = False, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `jaxsight ARGUMENTS` in this process, 200 columns wide.

    Fails if it prints JSON that its schema does not describe.

    Args:
        cwd: the working folder.
        input: the text on stdin.
        fresh: whether to trace in a new session, which ends with the command.
        environ: variables that differ from those of this process.
    """
    return hold(run_here(arguments, cwd, variables(**environ), input, fresh=fresh))


def process(
    *arguments: str, cwd: Path, input: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `jaxsight ARGUMENTS` as a process, otherwise as `jaxsight` does."""
    given = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    return hold(
        subprocess.run(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=variables(**environ),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=PATIENCE,
            **given,
        )
    )


def variables(**environ: str) -> dict[str, str]:
    """Return the environment of a command."""
    return {**os.environ, "PYTHONPATH": str(SERVER), "COLUMNS": "200", **environ}


def shown(*arguments: str, cwd: Path, fresh: bool = False, **environ: str) -> str:
    """Return what `jaxsight ARGUMENTS` writes to a terminal, run in this process."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        written = reader.submit(_all_of, ours)
        try:
            _run(arguments, cwd, variables(**environ), (theirs, theirs, theirs), fresh=fresh)
        finally:
            os.close(theirs)
    os.close(ours)
    return written.result().decode("utf-8", "replace")


def run_here(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    input: str | None = None,
    *,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process; return what a process would have printed, and its status."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile("a+b") as stdout,
        tempfile.TemporaryFile("a+b") as stderr,
    ):
        stdin.write((input or "").encode())
        stdin.seek(0)
        streams = (stdin.fileno(), stdout.fileno(), stderr.fileno())
        status = _run(arguments, cwd, environ, streams, fresh=fresh)
        printed = []
        for stream in (stdout, stderr):
            stream.seek(0)
            text = stream.read().decode()
            printed.append(text.replace("\r\n", "\n"))  # as `subprocess` reads text
    return subprocess.CompletedProcess([*COMMAND, *arguments], status, *printed)


def _run(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    streams: tuple[int, int, int],
    *,
    fresh: bool,
) -> int:
    """Run a command on the descriptors of standard streams; return its exit status."""
    with (
        contextlib.closing(Sessions()) if not _open else contextlib.nullcontext(_open[-1]) as own,
        _folder(cwd),
        _environment(environ),
        _signals(),
        _logging(),
        _streams(streams),
        _as_main(arguments),
    ):
        return own.run(fresh=fresh or not _open)


def _all_of(terminal: int) -> bytes:
    written = b""
    with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
        while data := os.read(terminal, 1 << 16):
            written += data
    return written


class Sessions:
    """The event loop that commands run in, and the sessions that they leave to later ones."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._kept: OrderedDict[object, SessionPool] = OrderedDict()
        """By the environment variables that processes of a session inherit."""

    def run(self, *, fresh: bool) -> int:
        """Run the command line of `sys.argv`; return its exit status."""
        THIS_PROCESS.run = self._runner.run
        THIS_PROCESS.sessions = None if fresh else self._of_environment()
        try:
            importlib.import_module("jaxsight.__main__").main()
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return (end.code or 0) & 0xFF
            print(end.code, file=sys.stderr)
            return 1
        except Exception as error:  # noqa: BLE001 - a process prints it, whatever it is
            sys.excepthook(type(error), error, error.__traceback__)
            return 1
        finally:
            THIS_PROCESS.run = THIS_PROCESS.sessions = None
        return 0

    def _of_environment(self) -> SessionPool:
        key = frozenset(item for item in os.environ.items() if item[0] not in endpoint.OF_TERMINALS)
        kept = self._kept.pop(key, None) or SessionPool(_IDLE)
        self._kept[key] = kept
        while len(self._kept) > _ENVIRONMENTS:
            _, oldest = self._kept.popitem(last=False)
            self._runner.run(oldest.aclose())
        return kept

    def close(self) -> None:
        """End all sessions with their processes."""
        with self._runner:
            for kept in self._kept.values():
                self._runner.run(kept.aclose())


_open: list[Sessions] = []
"""The sessions of the module whose tests run."""


@contextlib.contextmanager
def kept_sessions() -> Iterator[None]:
    """Leave the sessions of commands to later ones; end them afterwards."""
    _open.append(Sessions())
    try:
        yield
    finally:
        _open.pop().close()


@pytest.fixture(scope="module", autouse=True)
def sessions() -> Iterator[None]:
    """End the sessions of a module's commands after its last test."""
    with kept_sessions():
        yield


@pytest.fixture(scope="module")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def tmp_path(_place: Path) -> Path:
    """Return an empty folder, which has the same path for all tests of a module."""
    for entry in _place.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return _place


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    """Have these variables alone; that which names the test would be another one for each."""
    before = dict(os.environ)
    _set_environment({k: v for k, v in environ.items() if k != "PYTEST_CURRENT_TEST"})
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(environ: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Put back what a command that is about to end need not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Let a command set up the log, as in a process whose log has no handlers yet."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:], level = before
        root.setLevel(level)


@contextlib.contextmanager
def _streams(files: Sequence[int]) -> Iterator[None]:
    """Have these files as the standard streams, also of processes that the command starts."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    before, own = (sys.stdin, sys.stdout, sys.stderr), []
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            binary = os.fdopen(number, "rb" if number == 0 else "wb", closefd=False)
            own.append(
                TextIOWrapper(
                    binary,
                    encoding,
                    errors or None,
                    line_buffering=number == 2 or os.isatty(number),
                )
            )
        sys.stdin, sys.stdout, sys.stderr = own
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in own:
            stream.close()
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextlib.contextmanager
def _as_main(arguments: Sequence[str]) -> Iterator[None]:
    """Be `python -m jaxsight ARGUMENTS`, from which Typer has the name of the program."""
    main = importlib.import_module("jaxsight.__main__")
    before = sys.argv, sys.modules["__main__"]
    sys.argv, sys.modules["__main__"] = [str(main.__file__), *arguments], main
    try:
        yield
    finally:
        sys.argv, sys.modules["__main__"] = before
