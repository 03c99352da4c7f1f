"""Measure what makes a compile slow: one operation, an unrolled loop, or constant folding.

Changed programs are compiled one after the other: with the largest unrolled loop as a `scan`,
without constant folding, and then ever more operations of the program, until the one is found with
which it becomes slow. A change counts if the program compiles in a quarter of the time with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from jaxsight.compiler import folding
from jaxsight.wire.messages.compiling import (
    BARRIER,
    ROLLED,
    UNFOLDED,
    WITHOUT,
    Compile,
    Compiled,
    Saving,
)
from jaxsight.wire.messages.replies import LoweredChange
from jaxsight.wire.messages.requests import BEFORE
from jaxsight.workers.compilation.compilers import Trouble

_SHARE = 0.25
"""The share of the time in which a changed program has to compile, a choice: with more, changes
that do not remove the cause are reported; with less, one of two causes is missed."""
_LONGEST = 15.0
"""The same in seconds, a choice: each of some ten steps of the search may take as long."""
_BUDGET = 90.0
"""Seconds of compiling after which the search ends with what it has found: six long steps."""
_JUMP = 1.5
"""How many times as long a program compiles with an operation that makes it slow, at least, a
choice. Without such a jump, it is the number of operations that takes long."""
_START = 5.0
"""Seconds of the first compile of a process that are not XLA's: plugins start, devices are made."""

Change = Callable[[str, int], Awaitable[LoweredChange | None]]
"""Lowers the program with a change, as in `LowerChanged`; `None` if it cannot be changed so."""
CompileWithin = Callable[[Compile, float], Awaitable[Compiled | Trouble]]
"""Compiles a program within a deadline in seconds."""


class _Ended(Exception):
    """There is no time left, or a changed program cannot be lowered or compiled."""


@dataclass(eq=False, slots=True)
class Search:
    """The search of what saves most of the time that a program takes to compile."""

    change: Change
    compile: CompileWithin
    request: Compile
    """The program itself."""
    seconds: float
    """How long it compiles, at least."""
    may_fold: bool = False
    """Whether XLA may fold constants of it."""
    _left: float = field(default=_BUDGET, init=False)

    @property
    def limit(self) -> float:
        """The seconds in which a changed program has to compile."""
        return min(self.seconds * _SHARE, _LONGEST)

    async def savings(self) -> tuple[Saving, ...]:
        """Return the changes that save most of the time."""
        found = [
            saving
            for search in (self._unfolded, self._rolled, self._operation)
            async for saving in self._until_it_ends(search)
        ]
        return tuple(found)

    async def _until_it_ends(
        self, search: Callable[[], AsyncIterator[Saving]]
    ) -> AsyncIterator[Saving]:
        try:
            async for saving in search():
                if saving.seconds <= self.limit:
                    yield saving
        except _Ended:
            return

    async def _unfolded(self) -> AsyncIterator[Saving]:
        if self.may_fold:
            yield Saving(UNFOLDED, await self._seconds(folding.without(self.request)))

    async def _rolled(self) -> AsyncIterator[Saving]:
        rolled = await self._changed(ROLLED, 0)
        seconds = await self._seconds(self._of(rolled))
        yield Saving(ROLLED, seconds, rolled.path, rolled.copies)

    async def _operation(self) -> AsyncIterator[Saving]:
        """Yield what saves time at the operation with which the program becomes slow."""
        fast, slow = 0, (await self._changed(BEFORE, 0)).operations
        least, most = 0.0, self.seconds
        while slow - fast > 1 and most >= _JUMP * least:
            middle = (fast + slow) // 2
            before = await self._changed(BEFORE, middle)
            if (seconds := await self._seconds(self._of(before))) <= self.limit:
                fast, least = middle, seconds
            else:
                slow, most = middle, seconds
        if most < _JUMP * least:
            return
        for kind in (WITHOUT, BARRIER):
            changed = await self._changed(kind, fast)
            yield Saving(kind, await self._seconds(self._of(changed)), changed.path)

    async def _changed(self, change: str, at: int) -> LoweredChange:
        if (changed := await self.change(change, at)) is None:
            raise _Ended
        return changed

    def _of(self, changed: LoweredChange) -> Compile:
        return replace(self.request, program=changed.program, constants=(), barriers=(), trips=())

    async def _seconds(self, request: Compile) -> float:
        """Return how long a program compiles; its deadline if it takes longer.

        Raises:
            _Ended: it does not compile, or the time is over.
        """
        deadline = self.limit + _START
        if self._left < deadline:
            raise _Ended
        answer = await self.compile(request, deadline)
        if isinstance(answer, Trouble) and answer.kind != "time":
            raise _Ended
        seconds = answer.seconds if isinstance(answer, Compiled) else deadline
        self._left -= seconds
        return seconds
