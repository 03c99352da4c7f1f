"""The processes of `start`: their commands, and what their events say.

`followed` waits for one, as the command line does; an editor follows them from an event loop.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxsight.files.private import cache_folder
from jaxsight.text.units import count, time
from jaxsight.workers.own_python import booted
from jaxsight_repro.capturing.case import ProgramKind
from jaxsight_repro.failures import HANG_AFTER, RunFailure

Event = dict[str, Any]


class NoResult(Exception):
    """A process reported an error, or ended without a result; the message says why."""


def run_command(
    python: str, kind: ProgramKind, case: Path, arguments: Sequence[str], check: str = ""
) -> list[str]:
    """Return the command that runs the user's program under capture."""
    flags = ["--nan"] if check == "nan" else []
    return [python, *booted("repro"), "run", kind, str(case), *flags, "--", *arguments]


def emit_command(
    python: str, case: Path, out: Path, died: RunFailure | None, check: str = ""
) -> list[str]:
    """Return the command that writes the repro of a case to a file."""
    failure = None if died is None else died.record()
    return _command(python, "emit", case, out, died=failure, check=check)


def emit_dump_command(
    python: str, dump: Path, out: Path, check: str = "", timeout: float = HANG_AFTER
) -> list[str]:
    """Return the command that writes the repro of a dumped program to a file."""
    return _command(python, "emit-dump", dump, out, check=check, timeout=timeout)


def reduce_command(
    python: str,
    file: Path,
    out: Path,
    text: str,
    check: str = "",
    jobs: int = 2,
    timeout: float = HANG_AFTER,
) -> list[str]:
    """Return the command that reduces a repro.

    It continues an earlier reduction of the same `text` with the same options.
    """
    options = {"check": check, "jobs": jobs, "timeout": timeout}
    digest = hashlib.blake2b(json.dumps([text, options]).encode(), digest_size=12).hexdigest()
    state = cache_folder("reduce", digest)
    return _command(python, "reduce", file, out, state=str(state) if state else None, **options)


def _command(python: str, name: str, source: Path, out: Path, **options: object) -> list[str]:
    paths = str(source.absolute()), str(out.absolute())
    return [python, *booted("repro"), name, *paths, json.dumps(options)]


class Events:
    """The events of a process: it prints one JSON object per line."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Begin; `on_event` is called with each event but the last."""
        self._on_event = on_event
        self._last: Event | None = None

    def take(self, line: str) -> None:
        """Handle a line."""
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        if event.get("event") in ("done", "error"):
            self._last = event
        else:
            self._on_event(event)

    def result(self, errors: str) -> Event:
        """Return what the event `done` says.

        Args:
            errors: what the process wrote to standard error.

        Raises:
            NoResult: there is none.
        """
        last = self._last or {}
        if last.pop("event", "") == "done":
            return last
        if last:
            message, help = last.get("message", ""), last.get("help", "")
            raise NoResult(f"{message}; {help}" if help else str(message))
        last_lines = " ".join(errors.strip().splitlines()[-3:])
        raise NoResult(f"the process ended without a result: {last_lines}")


def followed(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_event: Callable[[Event], None] = lambda event: None,
) -> Event:
    """Run a command, and return what its last event says, `done`.

    Raises:
        NoResult: it reports an error, or ends without a result.
        KeyboardInterrupt: it was interrupted, and has no result.
    """
    events = Events(on_event)
    is_interrupted = False
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                events.take(line)
        except KeyboardInterrupt:
            is_interrupted = True
            process.send_signal(signal.SIGINT)
            for line in process.stdout:
                events.take(line)
        process.wait()
        stderr.seek(0)
        errors = stderr.read()
    try:
        return events.result(errors)
    except NoResult as error:
        if is_interrupted:
            raise KeyboardInterrupt from error
        raise


def progress(event: Event) -> str:
    """Return an event of a reduction as text: `12 equations left, 30 candidates tried`."""
    left = event.get("equations", event.get("statements"))
    if left is None:
        return "running the file"
    unit = "equation" if "equations" in event else "statement"
    tried = count(int(event.get("tried", 0)), "candidate")
    return f"{count(int(left), unit)} left, {tried} tried"


def facts(event: Event) -> str:
    """Return the figures of a reduction: `120 → 3 equations, 200 candidates in 12 s`."""
    tried = count(event["tried"], "candidate")
    parts = [
        f"{event['before']:,} → {event['after']:,} {event['unit']}",
        f"{tried} in {time(event['seconds'])}",
    ]
    if event["minimal"]:
        parts.append("no single one can be deleted")
    if event["confidence"] < 1:
        parts.append(f"fails in {event['confidence']:.0%} of runs")
    return ", ".join(parts)


def difference(event: Event) -> str:
    """Return how the repro that an `emit` wrote fails, and how it should."""
    expected, observed = (RunFailure(**event[key]) for key in ("expected", "observed"))
    return f"does not fail in the same way: {observed.headline}, expected {expected.headline}"
