"""Files that kill their tracers, paused so that they do not kill one after the other.

A file whose requests killed several tracers in a row is paused: the same text is not run again, and
a changed text only after a delay, which grows with each death.
One answer for any function of the file removes the file from the list.
Other files are not affected.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jaxsight.wire.messages.replies import Cancelled
from jaxsight.wire.messages.requests import NEW, DryRun, Request, Trace
from jaxsight.workers.results import Died, Outcome, Reason

PATIENCE = 5
"""Consecutive deaths after which a file is paused, as Jupyter's `KernelRestarter.restart_limit`:
fewer punish one unlucky edit, each costs a spare."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds until a changed text of the file is tried; they double with each death, up to this, a
choice: whoever has fixed the file does not wait longer."""

_INNOCENT = (Reason.STOPPED, Reason.SPOILED, Reason.TIMEOUT, Reason.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class _Crashes:
    deaths: int
    death: Died
    request: Request[object]
    texts: Mapping[str, str] | None
    until: float
    may_be_over: bool = False
    """What it imports has changed on disk."""


class CrashBackoff:
    """The files that killed tracers recently."""

    def __init__(self) -> None:
        self._by_file: dict[str, _Crashes] = {}
        self._failing: set[str] = set()

    def clear(self) -> None:
        """Clear the list, so that all files are tried again."""
        self._by_file.clear()
        self._failing.clear()

    def retry(self) -> None:
        """Let the same texts run again after the delay: files on disk have changed."""
        self._by_file = {
            file: replace(crashes, may_be_over=True) for file, crashes in self._by_file.items()
        }

    def repeated_death(
        self, message: Request[object], texts: Mapping[str, str] | None
    ) -> Died | None:
        """Return the death that this request would cause again, or `None` if it is to be run.

        `texts` are those of open files: imported modules may be the cause.
        """
        slice = message.executes
        crashes = self._by_file.get(slice.file) if slice is not None else None
        if crashes is None or crashes.deaths < PATIENCE:
            return None
        is_same = message.numbered(NEW) == crashes.request and texts == crashes.texts
        is_same = is_same and not crashes.may_be_over
        if time.monotonic() >= crashes.until and not is_same:
            return None
        return replace(crashes.death, id=message.id, repeated=True)

    def has_failed(self, message: Trace) -> bool:
        """Return whether a fresh tracer had an internal error with this file too.

        Then requests that ran before are not the cause.
        """
        return message.file in self._failing

    def add_failure(self, message: Trace) -> None:
        """Remember that a fresh tracer had an internal error with this file."""
        self._failing.add(message.file)

    def add_outcome(
        self,
        message: Request[object],
        texts: Mapping[str, str] | None,
        outcome: Outcome[object],
    ) -> None:
        """Remember how a request ended.

        Requests that exceeded their time do not count, as the tracer survived until then, nor do
        dry runs: what a program of another file does says nothing about this one.
        """
        slice = message.executes
        if slice is None or isinstance(message, DryRun):
            return
        match outcome:
            case Died(death=death):
                if death.reason in _INNOCENT:
                    return
                before = self._by_file.get(slice.file)
                deaths = 1 + (before.deaths if before is not None else 0)
                pause = min(FIRST_PAUSE * 2 ** max(deaths - PATIENCE, 0), LONGEST_PAUSE)
                self._by_file[slice.file] = _Crashes(
                    deaths, outcome, message.numbered(NEW), texts, time.monotonic() + pause
                )
            case Cancelled():
                return
            case _:
                self._by_file.pop(slice.file, None)
