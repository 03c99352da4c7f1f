"""What a device executed, as the lines of a profile yield it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_ORDERED = 256
"""Events that are held back to put them in order, a choice: XLA sorts each line by time
(`SortXSpace` in `xla/tsl/profiler/utils/xplane_utils.cc`), so that hardly any are out of order."""


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
