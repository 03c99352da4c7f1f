"""What a device executed, as the lines of a profile yield it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

_ORDERED = 256
"""Events that are held back to put them in order, a choice: XLA sorts each line by time
(`SortXSpace` in `xla/tsl/profiler/utils/xplane_utils.cc`), so that hardly any are out of order."""
_TRANSFERS = ("memcpy", "memset")
"""How the titles of copies and clears begin, those of no instruction of a program."""


class Executed(NamedTuple):
    """An execution of a kernel, a copy or a clear; times are in picoseconds."""

    start: int
    end: int
    device: str
    program: str
    """Name and number of its program, as `jit_step(18)`; empty for what belongs to none."""
    op: str
    """The instruction of the program; empty if it is not known."""
    title: str
    """The name of the kernel, if it is another one than that of the instruction."""
    run: int | None = None
    """The number of the program's execution, where a profile has it."""
    flow: int = 0
    """The number of the event that says when it ended, if that is another one."""
    is_async: bool = False
    """Whether it only shows how long something took that went on beside others."""
    source: str = ""
    """Its line as `FILE:LINE`, where events have it."""
    opcode: str = ""
    """What kind of instruction it is, where events have it."""

    @property
    def is_transfer(self) -> bool:
        """Whether it copies or clears memory outside of a program's instructions."""
        return not self.op and self.title.lower().startswith(_TRANSFERS)


class Mark(NamedTuple):
    """A step, as the program has marked it with `jax.profiler.StepTraceAnnotation`."""

    start: int
    end: int
    name: str
    number: int


class KernelEnd(NamedTuple):
    """A kernel that went on beside others has ended, at the latest now."""

    start: int
    flow: int
    task: list[int]
    """Where the kernels of the task begin that finished it; those of the task come in order."""
    begun: int
    """How many of them had begun."""


Event = TypeVar("Event", bound=Executed | Mark | KernelEnd)


def innermost(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of a line but for kernels around others, such as those of loops.

    They only run the others. What a thread or a core does inside of an event is the event's work: a
    `while`, `conditional` or `call` has its first kernel there, or is a kernel itself if it has
    none, such as a small loop on a CPU.

    Args:
        events: by their start, and the longest first of those with the same.
    """
    held: list[Event] = []
    """The last kernel, and what else began while it ran."""
    end = 0
    for event in events:
        if event.start >= end:
            yield from held
            held = []
        elif isinstance(event, Executed):
            yield from held[1:]
            held = []
        if isinstance(event, Executed):
            end = event.end
        held.append(event)
    yield from held


def ordered(events: Iterable[Executed]) -> Iterator[Executed]:
    """Yield events by their start, of which each is at most a few places away from where it is."""
    heap: list[Executed] = []
    for event in events:
        if len(heap) < _ORDERED:
            heapq.heappush(heap, event)
        else:
            yield heapq.heappushpop(heap, event)
    while heap:
        yield heapq.heappop(heap)
