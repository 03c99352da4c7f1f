"""Progress with the rate and the remaining time, on stderr."""

from __future__ import annotations

import threading
import time
from typing import Self

from jaxsight.cli.output.printing import Printer, Text

_LINES = 15.0
"""Seconds between lines where stderr is no terminal, a choice: a log of 240 lines an hour."""

_SHOWN = 0.2
"""Seconds between updates in a terminal: 5 a second look alive, and cost no noticeable time."""


class RowProgress:
    """Counts programs from several threads, and shows how many are done."""

    def __init__(self, unit: str = "programs") -> None:
        """Show nothing yet; `unit` names what is counted before the first stage."""
        self._printer = Printer(stderr=True)
        self._status = self._printer.status("") if self._printer.is_terminal else None
        self._lock = threading.Lock()
        self._unit = unit
        self._stage = ""
        self._before = self._done = self._wanted = 0
        self._started = self._shown = time.monotonic()

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def report(self, stage: str, done: int, wanted: int) -> None:
        """Take what is known for certain: a stage, and how many of its programs are done.

        Args:
            stage: another one starts to count anew.
            done: programs that are done.
            wanted: how many there are; 0 if that is not known.
        """
        with self._lock:
            if stage != self._stage:
                self._stage, self._before, self._done = stage, done, done
                self._started = time.monotonic()
            self._done = max(self._done, done)
            self._wanted = wanted
        self._show()

    def step(self) -> None:
        """Count a program."""
        with self._lock:
            self._done += 1
            if self._wanted:
                self._done = min(self._done, self._wanted)
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._shown < (_LINES if self._status is None else _SHOWN):
                return
            self._shown = now
            text = line(
                self._stage or f"{self._unit}",
                self._done,
                self._wanted,
                self._done - self._before,
                now - self._started,
            )
        if self._status is None:
            self._printer.print(text)
        else:
            self._status.update(Text(text))


def line(stage: str, done: int, wanted: int, recent: int, seconds: float) -> str:
    """Return progress as text, such as `rows: 120 of 1,000 · 7.5/s · 2 min left`.

    Args:
        stage: what is counted.
        done: how many are done.
        wanted: how many there are; 0 if that is not known.
        recent: how many of them were done in the last `seconds`.
        seconds: since the stage began.
    """
    parts = [f"{stage}: {done:,} of {wanted:,}" if wanted else f"{stage}: {done:,}"]
    if recent > 0 and seconds > 0:
        rate = recent / seconds
        parts.append(f"{rate:.1f}/s")
        if wanted:
            parts.append(f"{duration((wanted - done) / rate)} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Return a time as `45 s`, `12 min` or `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
