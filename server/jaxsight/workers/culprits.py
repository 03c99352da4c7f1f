"""Which files kill their tracers, so that none does so without end.

A file whose requests killed several tracers in a row is paused: the same text is not run again, and
another text only after a while, longer each time. One answer for any function of the file, and the
file is forgotten. Other files never notice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from jaxsight.tracer.protocol import Cancelled, Request, Trace
from jaxsight.workers.outcomes import Died, Outcome, Reason

PATIENCE = 5
"""Deaths in a row after which a file is paused."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds until another text of the file is tried: doubled with each further death, up to this."""

_INNOCENT = (Reason.STOPPED, Reason.SPOILED, Reason.TIMEOUT, Reason.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class _Culprit:
    deaths: int
    last: Died
    request: Trace
    until: float


class Culprits:
    """The files that killed tracers lately."""

    def __init__(self) -> None:
        self._by_file: dict[str, _Culprit] = {}
        self._failing: set[str] = set()

    def clear(self) -> None:
        """Try everything again."""
        self._by_file.clear()
        self._failing.clear()

    def expect(self, message: Request) -> Died | None:
        """The death that this request would bring again; `None` when it is to be run."""
        culprit = self._by_file.get(message.file) if isinstance(message, Trace) else None
        if culprit is None or culprit.deaths < PATIENCE:
            return None
        if time.monotonic() >= culprit.until and replace(message, id=0) != culprit.request:
            return None
        return replace(culprit.last, id=message.id, repeated=True)

    def fails(self, message: Trace) -> bool:
        """Whether a fresh tracer failed at this file too: then it is no use to blame what ran
        before.
        """
        return message.file in self._failing

    def blame(self, message: Trace) -> None:
        """A fresh tracer failed at this file, from within."""
        self._failing.add(message.file)

    def judge(self, message: Request, outcome: Outcome) -> None:
        """Remember how a request ended.

        Those that took too long count not: a tracer lasted through them.
        """
        if not isinstance(message, Trace):
            return
        match outcome:
            case Died(death=death):
                if death.reason in _INNOCENT:
                    return
                before = self._by_file.get(message.file)
                deaths = 1 + (before.deaths if before is not None else 0)
                pause = min(FIRST_PAUSE * 2 ** max(deaths - PATIENCE, 0), LONGEST_PAUSE)
                self._by_file[message.file] = _Culprit(
                    deaths, outcome, replace(message, id=0), time.monotonic() + pause
                )
            case Cancelled():
                return
            case _:
                self._by_file.pop(message.file, None)
