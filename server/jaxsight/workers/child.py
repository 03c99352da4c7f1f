"""Processes of ours that a caller waits for; `own_python` says how each of them is started.

Those that answer messages on an event loop are in `process.py`, and those that run the user's
programs below the watchdog, in `watchdog/watched.py`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterable
from typing import Self

from jaxsight.workers.own_python import OwnPython
from jaxsight.workers.watchdog import guardian


def completed(own: OwnPython) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, and return its exit status with what it printed."""
    return subprocess.run(
        own.command,
        cwd=own.folder,
        env=own.environment,
        capture_output=True,
        text=True,
        check=False,
    )


async def answered(own: OwnPython, given: bytes) -> tuple[int, bytes, bytes]:
    """Run a process that reads some input; return its exit status, its output and its errors.

    It is killed where nobody waits for it any more.
    """
    import asyncio  # which callers of the others do not wait for (30 ms)

    process = await asyncio.create_subprocess_exec(
        *own.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=own.folder,
        env=own.environment,
    )
    try:
        printed, errors = await process.communicate(given)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, printed, errors


def kill(pids: Iterable[int]) -> None:
    """Kill processes, as far as they are there and ours."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


class ChildProcess:
    """A process that reads requests and writes answers, until `end` or the end of the context."""

    def __init__(self, own: OwnPython) -> None:
        """Start the process, in a session of its own: Ctrl-C is for the one that waits for it."""
        self._process = subprocess.Popen(
            own.command,
            cwd=own.folder,
            env=own.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests = self._process.stdin.fileno()
        """The descriptor that its requests are written to."""
        self._answers = self._process.stdout.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def tree(self) -> list[int]:
        """It and all that it started."""
        return [self._process.pid, *guardian.descendants(self._process.pid)]

    def read(self, seconds: float | None = None) -> bytes | None:
        """Return what it writes next, empty at its end; `None` if that takes longer."""
        if seconds is not None and not select.select([self._answers], [], [], seconds)[0]:
            return None
        return os.read(self._answers, 1 << 20)

    def status(self) -> int:
        """Wait until it ends, and return its exit status."""
        return self._process.wait()

    def end(self) -> None:
        """Kill it and all that it started."""
        if os.name == "posix":
            kill(self.tree)
        self._process.kill()
        self._process.communicate()
