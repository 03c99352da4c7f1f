"""Run a process of `jaxsight repro` with the user's Python, and follow its events."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxsight.cli.errors import CommandError
from jaxsight.cli.user_python import user_environment
from jaxsight.repro.failures import CRASH, HANG, Failure
from jaxsight.repro.running import signal_name

BOOT = Path(__file__).parents[1] / "repro" / "boot.py"

_GRACE = 5.0
"""Seconds that a program has to end after an interruption."""

Event = dict[str, Any]


def run_captured(
    python: str,
    kind: str,
    case: Path,
    arguments: Sequence[str],
    timeout: float | None = None,
    check: str = "",
) -> tuple[int, Failure | None]:
    """Run the user's program under capture, with this process's standard streams.

    Return its exit status, and how it died if it did not end by itself.
    """
    flags = ["--nan"] if check == "nan" else []
    command = [python, str(BOOT), "run", kind, str(case), *flags, "--", *arguments]
    process = subprocess.Popen(command, env=user_environment())
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = _interrupt(process)
        if code >= 0:
            return code, None
        return code, Failure(HANG, message=f"within {timeout:g} s")
    except KeyboardInterrupt:
        code = _interrupt(process)
        return code, None if code >= 0 else Failure(HANG, message="until it was interrupted")
    return code, Failure(CRASH, signal_name(-code)) if code < 0 else None


def _interrupt(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a process as Ctrl-C does, and kill it if it goes on; return its exit status."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()


def emit(
    python: str,
    case: Path,
    out: Path,
    died: Failure | None,
    *,
    anonymous: bool = False,
    check: str = "",
) -> Event:
    """Write the repro of a case to a file, and return what came of it.

    Raises:
        CommandError: there is nothing to write.
    """
    options = {"died": died.record() if died else None, "anonymous": anonymous, "check": check}
    return follow(python, ["emit", str(case), str(out.absolute()), json.dumps(options)])


def follow(
    python: str, command: Sequence[str], on_event: Callable[[Event], None] = lambda event: None
) -> Event:
    """Run another command of the boot script; return its last event, `done`.

    Raises:
        CommandError: it reports an error, or ends without a result.
    """
    process = subprocess.Popen(
        [python, str(BOOT), *command],
        env=user_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    done: Event | None = None
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stdout:
                event = _event(line)
                match event.get("event"):
                    case "done":
                        done = event
                    case "error":
                        message, help = event.get("message", ""), event.get("help", "")
                        raise CommandError(f"{message}; {help}" if help else message)
                    case _:
                        on_event(event)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            for line in process.stdout:
                event = _event(line)
                done = event if event.get("event") == "done" else done
            if done is None:
                raise
        errors = process.stderr.read()
    if done is None:
        last_lines = errors.strip().splitlines()[-3:]
        raise CommandError(f"`repro {command[0]}` ended without a result: {' '.join(last_lines)}")
    return done


def _event(line: str) -> Event:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
