"""What kills tracers, so that it does not kill one after the other.

A statement, a program or a request that killed a tracer is not run again, whoever asks, until it or
a file that it reads has changed, or the user restarts.
Other statements, programs and files are not affected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from jaxsight.files.texts import Texts, Version
from jaxsight.wire.messages.requests import DryRun, Request, Trace
from jaxsight.workers.results import Died, Outcome

PATIENCE = 5
"""Deaths after which the same is not run again if others may have ended the process, as Jupyter's
`KernelRestarter.restart_limit`: fewer punish what was ended by mistake, each costs a spare."""


@dataclass(frozen=True, slots=True)
class _Killer:
    """What killed a tracer, the slice that it was run for, and the other files that it read."""

    death: Died
    slice: _Slice
    own: Version
    """That of the slice's file."""
    files: Mapping[str, Version]
    deaths: int = 1


class CrashBackoff:
    """What killed tracers recently."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._killers: dict[object, _Killer] = {}
        self.failing: set[str] = set()
        """Files with which fresh tracers had internal errors: what ran before is not the cause."""

    def clear(self) -> None:
        """Clear the list, so that all files are tried again."""
        self._killers.clear()
        self.failing.clear()

    def repeated_death(self, message: Request[object]) -> Died | None:
        """Return the death that this request would cause again, or `None` if it is to be run."""
        for what in _run_by(message):
            killer = self._killers.get(what)
            if killer is None or not self._is_current(killer, message):
                continue
            if killer.death.is_deserved or killer.deaths >= PATIENCE:
                return replace(killer.death, id=message.id, repeated=True)
        return None

    def add_outcome(self, message: Request[object], died: Outcome[object]) -> None:
        """Remember what a request did that has ended its tracer."""
        slice = message.executes
        if slice is None or not isinstance(died, Died) or not died.is_own:
            return
        files = {path: version for path, version in died.files if path != slice.file}
        if died.program is not None:
            what: object = died.program
            files[died.program.file] = self._texts.version(died.program.file)
            files.pop(slice.file, None)
        elif died.statement:
            what = slice.file, next(c.key for c in slice.chunks if c.id == died.chunk)
        else:
            what = _asked(message, slice)
        own, before = self._texts.version(slice.file), self._killers.get(what)
        deaths = 1 + (before.deaths if before is not None else 0)
        self._killers[what] = _Killer(died, _of(slice), own, files, deaths)

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
