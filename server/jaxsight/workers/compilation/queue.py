"""The requests that wait for a compiler, the most urgent first."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import IntEnum


class Urgency(IntEnum):
    """Why a program is compiled; requests of equal urgency are served in order."""

    ASKED = 0
    """A person asked about this function and waits."""
    SEEN = 1
    """The function is at the cursor or on screen."""
    UNSEEN = 2


@dataclass(eq=False, slots=True)
class Queue:
    """A lock whose next owner is the most urgent one that waits."""

    is_busy: bool = False
    _waiting: list[tuple[Urgency, int, asyncio.Future[None]]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @contextlib.asynccontextmanager
    async def turn(self, urgency: Urgency) -> AsyncIterator[None]:
        """Wait until nobody else is in the body, and nobody more urgent waits."""
        if self.is_busy:
            turn = asyncio.get_running_loop().create_future()
            # The number keeps equals in order, and futures cannot be compared.
            heapq.heappush(self._waiting, (urgency, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                # Its turn had begun already: pass it on, as nobody else would.
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self.is_busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the next one in; the queue stays busy on its behalf."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            # The others were cancelled while they waited.
            if not turn.done():
                turn.set_result(None)
                return
        self.is_busy = False
