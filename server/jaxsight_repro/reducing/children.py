"""Runs functions in forked children, with limits of time, memory and processes.

The process that forks has imported JAX but not initialized a backend; it has a single thread. Each
child may crash, hang or use up memory, and is killed alone, with all processes that it started.
Its temporary files are in a folder of its own, which is removed when it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jaxsight.workers.child import kill
from jaxsight.workers.watchdog import guardian
from jaxsight_repro import failures
from jaxsight_repro.running import MOST_PROCESSES

_PAUSE = 0.05
"""Seconds between checks of the limits, a choice: most candidates take longer."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """Limits of one run: seconds, and bytes."""

    seconds: float
    memory: int


@dataclass(slots=True)
class Child:
    """A running child."""

    pid: int
    pipe: int
    deadline: float
    limits: ChildLimits
    folder: str
    output: bytearray = field(default_factory=bytearray)
    ending: failures.RunFailure | None = None

    @property
    def ended(self) -> bool:
        """Whether the child has been reaped."""
        return self.ending is not None

    def kill(self) -> None:
        """End the child and the processes that it started."""
        if not self.ended:
            self._end(failures.RunFailure(failures.CRASH, "SIGKILL"))

    def check(self) -> None:
        """Read what the child wrote, and enforce its limits."""
        while self.ending is None and select.select([self.pipe], [], [], 0)[0]:
            data = os.read(self.pipe, 1 << 16)
            if not data:
                self._end(None)
                return
            self.output += data
        if self.ending is None:
            self._enforce()

    def _enforce(self) -> None:
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._end(None)  # a process that it started keeps the pipe open
            return
        if time.monotonic() > self.deadline:
            self._end(
                failures.RunFailure(failures.HANG, message=f"within {self.limits.seconds:g} s")
            )
            return
        tree = [self.pid, *guardian.descendants(self.pid)]
        if len(tree) > MOST_PROCESSES:
            self._end(failures.RunFailure(failures.PROCESSES))
        elif guardian.resident(tree) > self.limits.memory < guardian.proportional(tree):
            self._end(
                failures.RunFailure(failures.MEMORY, message=f"of {self.limits.memory >> 20} MiB")
            )

    def _end(self, ending: failures.RunFailure | None) -> None:
        """Kill and reap the child; without an `ending`, its exit status decides."""
        tree = guardian.descendants(self.pid)
        if ending is not None:
            kill([self.pid, *tree])
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        kill(tree)
        shutil.rmtree(self.folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        if ending is None and code > 0:
            ending = failures.RunFailure(failures.EXCEPTION, "SystemExit", f"exit status {code}")
        self.ending = ending or failures.failure_of_exit(code)


def start(task: Callable[[], bytes], limits: ChildLimits) -> Child:
    """Fork a child that writes the result of a task."""
    read, write = os.pipe()
    folder = tempfile.mkdtemp(prefix="jaxsight-child-")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(write)
        return Child(pid, read, time.monotonic() + limits.seconds, limits, folder)
    code = 1
    try:
        os.close(read)
        _settle()
        set_temporary_folder(folder)
        data = memoryview(task())
        while data:
            data = data[os.write(write, data) :]
        code = 0
    finally:
        os._exit(code)


def _settle() -> None:
    """Make this process independent of its parent: its session, its signals, its output."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(guardian.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    guardian.be_the_first_to_go()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def set_temporary_folder(folder: str) -> None:
    """Let temporary files of this process, and of those that it starts, be in a folder."""
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def adopt() -> None:
    """Become the parent of processes that children leave behind (Linux only)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(guardian.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_interrupts: list[int] = []


def hold_interrupts() -> None:
    """Keep Ctrl+C until a child is waited for, where nothing is lost.

    Python raises `KeyboardInterrupt` anywhere; in hooks that run around a fork, it is ignored.
    """
    signal.signal(signal.SIGINT, lambda number, frame: _interrupts.append(number))


def sweep() -> None:
    """Kill all processes below this one."""
    while pids := guardian.descendants(os.getpid()):
        kill(pids)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def wait(child: Child, others: Sequence[Child] = ()) -> failures.RunFailure:
    """Wait for a child to end, and return how; enforce the limits of others meanwhile.

    Raises:
        KeyboardInterrupt: there was an interrupt since the last call.
    """
    while child.ending is None:
        if _interrupts:
            _interrupts.clear()
            raise KeyboardInterrupt
        pipes = [each.pipe for each in (child, *others) if not each.ended]
        select.select(pipes, [], [], _PAUSE)
        for each in (child, *others):
            if not each.ended:
                each.check()
    return child.ending


def run(task: Callable[[], bytes], limits: ChildLimits) -> tuple[failures.RunFailure, bytes]:
    """Run a task in a child; return how the child ended, and what it wrote."""
    child = start(task, limits)
    try:
        ending = wait(child)
    finally:
        child.kill()
    return ending, bytes(child.output)
