"""Run a process of `jaxsight repro` with the user's Python, and follow its events."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxsight.cli.errors import failing_on
from jaxsight.cli.user_python import user_environment
from jaxsight.workers import child
from jaxsight.workers.compilation import environments
from jaxsight.workers.watchdog import guardian
from jaxsight_repro.capturing.case import ProgramKind
from jaxsight_repro.failures import HANG, RunFailure, failure_of_exit
from jaxsight_repro.processes import Event, NoResult, followed, run_command

_GRACE = 5.0
"""Seconds that a program has to end after an interruption, before it is killed: a choice. With
fewer, one that saves its state loses it; with more, one that hangs keeps the user waiting."""


def run_captured(
    python: str,
    kind: ProgramKind,
    case: Path,
    arguments: Sequence[str],
    timeout: float | None = None,
    check: str = "",
) -> tuple[int, RunFailure | None]:
    """Run the user's program under capture, with this process's standard streams.

    Return its exit status, and how it died if it did not end by itself.
    """
    command = run_command(python, kind, case, arguments, check)
    process = subprocess.Popen(command, env=user_environment())
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = _interrupt(process)
        if code >= 0:
            return code, None
        return code, RunFailure(HANG, message=f"within {timeout:g} s")
    except KeyboardInterrupt:
        code = _interrupt(process)
        return code, None if code >= 0 else RunFailure(HANG, message="until it was interrupted")
    return code, failure_of_exit(code) if code < 0 else None


def _interrupt(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a process as Ctrl-C does, and kill it if it goes on; return its exit status.

    What it started is killed with it.
    """
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill(guardian.descendants(process.pid))
        process.kill()
        return process.wait()


def run(command: Sequence[str], on_event: Callable[[Event], None] = lambda event: None) -> Event:
    """Run another process of `start`; return its last event, `done`.

    Raises:
        CommandError: it reports an error, or ends without a result.
    """
    with failing_on(NoResult):
        return followed(command, {**user_environment(), **environments.located()}, on_event)
