"""What kills tracers, so that it does not kill one after the other.

A statement, a program or a request that killed a tracer is not run again, whoever asks, until it or
a file that it reads has changed, or the user restarts.
A file whose requests killed several tracers in a row is paused: the same text is not run again, and
a changed text only after a delay, which grows with each death.
One answer for any function of the file removes the file from the list.
Other files are not affected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from jaxsight.files.texts import Texts, Version
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


@dataclass(frozen=True, slots=True)
class _Killer:
    """What killed a tracer, the slice that it was run for, and the other files that it read."""

    death: Died
    slice: _Slice
    own: Version
    """That of the slice's file."""
    files: Mapping[str, Version]


class CrashBackoff:
    """What killed tracers recently."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._killers: dict[object, _Killer] = {}
        self._by_file: dict[str, _Crashes] = {}
        self.failing: set[str] = set()
        """Files with which fresh tracers had internal errors: what ran before is not the cause."""

    def clear(self) -> None:
        """Clear the list, so that all files are tried again."""
        self._killers.clear()
        self._by_file.clear()
        self.failing.clear()

    def retry(self, *, data: bool) -> None:
        """Let the same texts run again after the delay: files on disk have changed.

        Which data a killer has read is not known.
        """
        if data:
            self._killers.clear()
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
        for what in _run_by(message):
            killer = self._killers.get(what)
            if killer is not None and self._is_current(killer, message):
                return replace(killer.death, id=message.id, repeated=True)
        crashes = self._by_file.get(slice.file) if slice is not None else None
        if crashes is None or crashes.deaths < PATIENCE:
            return None
        is_same = message.numbered(NEW) == crashes.request and texts == crashes.texts
        if time.monotonic() >= crashes.until and (crashes.may_be_over or not is_same):
            return None
        return replace(crashes.death, id=message.id, repeated=True)

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
        if slice is None:
            return
        if isinstance(outcome, Died) and outcome.is_deserved:
            self._add_killer(message, slice, outcome)
        if isinstance(message, DryRun):
            return
        if not isinstance(outcome, Died | Cancelled):
            self._by_file.pop(slice.file, None)
        elif isinstance(outcome, Died) and outcome.death.reason not in _INNOCENT:
            before = self._by_file.get(slice.file)
            deaths = 1 + (before.deaths if before is not None else 0)
            pause = min(FIRST_PAUSE * 2 ** max(deaths - PATIENCE, 0), LONGEST_PAUSE)
            until = time.monotonic() + pause
            request = message.numbered(NEW)
            self._by_file[slice.file] = _Crashes(deaths, outcome, request, texts, until)

    def _add_killer(self, message: Request[object], slice: Trace, died: Died) -> None:
        files = {path: version for path, version in died.files if path != slice.file}
        if died.program is not None:
            what: object = died.program
            files[died.program.file] = self._texts.version(died.program.file)
            files.pop(slice.file, None)
        elif died.statement:
            what = slice.file, next(c.key for c in slice.chunks if c.id == died.chunk)
        else:
            what = _asked(message, slice)
        own = self._texts.version(slice.file)
        self._killers[what] = _Killer(died, _of(slice), own, files)

    def _is_current(self, killer: _Killer, message: Request[object]) -> bool:
        """Return whether a killer and what it reads are the same for a request."""
        slice, file = message.executes, killer.slice[0]
        is_same = slice is not None and _of(slice) == killer.slice
        return (
            is_same or killer.death.program is None or self._texts.is_current(file, killer.own)
        ) and self._texts.are_current(killer.files)


_Slice = tuple[str, tuple[str, ...]]
"""A file, and the keys of statements of it."""


def _of(slice: Trace) -> _Slice:
    return slice.file, tuple(chunk.key for chunk in slice.chunks)


def _asked(message: Request[object], slice: Trace) -> object:
    """Return what a request traces, whatever is asked about that."""
    inputs = slice.arguments, slice.sizes, slice.dry_call, slice.mesh
    return isinstance(message, DryRun), _of(slice), slice.function, inputs


def _run_by(message: Request[object]) -> Iterator[object]:
    """Yield the statements, programs and traces that a request runs."""
    slice = message.executes
    if slice is None:
        return
    yield from ((slice.file, chunk.key) for chunk in slice.chunks)
    yield _asked(message, slice)
    if slice.dry_call is not None:
        yield slice.dry_call.entry
    if isinstance(message, DryRun):
        yield from message.entries
