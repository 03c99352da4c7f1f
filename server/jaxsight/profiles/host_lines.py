"""What a host's threads did: steps, waits, and on CPUs the kernels.

Kernels of a CPU are events of its threads with the statistic `hlo_op`
(`xla/backends/cpu/runtime/thunk_executor.cc`). An event lasts until the thread is free again. A
kernel that other threads work on, such as a large product, goes on until an event `end: NAME`; the
statistic `_p` leads to it. It is recorded after the kernels that waited for it, if the thread that
finishes the work goes on with those, which may be a whole iteration of a loop: then the kernel has
ended where the first of them begins.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import itemgetter
from typing import Final

from jaxsight.profiles.space import XEvent, XLine, XPlane, XSpace, stats
from jaxsight.profiles.timeline import Executed, KernelEnd, Mark, innermost

PLANE: Final = "/host:CPU"
_EXECUTE = "ThunkExecutor::Execute"
_TASK = "ThreadpoolListener::StartRegion"
"""Where a thread begins a task, such as a part of a kernel and what follows it."""
_MOST_IN_TASK = 10_000
"""Kernels of a task whose begin is kept, a choice: of more, the last."""
_HELD = 100_000
"""Kernels whose end is awaited, at most: that of a profile's last ones may be missing."""
_MOST_STEPS = 100_000

_WANTED = (
    "hlo_op",
    "hlo_module",
    "program_id",
    "run_id",
    "device_ordinal",
    "step_num",
    "_p",
    "_c",
)


class HostTask(Enum):
    """What a host spends time on that the device may wait for."""

    RESULTS = "waiting for results"
    TRANSFER = "copying arguments to devices"
    COMPILING = "compiling"
    TRACING = "tracing and lowering"


_WORK = (
    (HostTask.RESULTS, re.compile(r"np\.asarray\(jax\.Array\)|.*::BlockHostUntilReady")),
    (HostTask.RESULTS, re.compile(r"\$(?:api|array)\.py:\d+ (?:block_until_ready|device_get)")),
    (HostTask.TRANSFER, re.compile(r"shard_args|DevicePutWithSharding|batched_device_put")),
    (HostTask.COMPILING, re.compile(r"backend_compile(?:_and_load)?")),
    (HostTask.TRACING, re.compile(r"trace_to_jaxpr\w*|lower_sharding_computation")),
)
"""Events of JAX 0.8 to 0.12 by their names. Those with `$` are from the Python tracer, which may be
switched off."""


class _Kind(Enum):
    KERNEL = auto()
    STEP = auto()
    ENDED = auto()
    EXECUTE = auto()
    TASK = auto()
    WORK = auto()


@dataclass(slots=True)
class HostWork:
    """How often and how long a host worked on something; a part of it counts once."""

    calls: int = 0
    time: int = 0


@dataclass(slots=True)
class HostLines:
    """The lines of a host, and what was found on them once `executed` has ended."""

    space: XSpace
    plane: XPlane
    marks: list[Mark] = field(default_factory=list)
    work: dict[HostTask, HostWork] = field(default_factory=dict)

    def executed(self) -> Iterator[Executed | Mark]:
        """Yield steps and kernels in the order of their start."""
        wanted = self.plane.wanted(_WANTED)
        kinds: dict[int, _Kind] = {}
        ignored: set[int] = set()
        lines = [innermost(self._line(line, wanted, kinds, ignored)) for line in self.plane.lines]
        return _completed(heapq.merge(*lines, key=itemgetter(0)))

    def _line(
        self, line: XLine, wanted: dict[int, str], kinds: dict[int, _Kind], ignored: set[int]
    ) -> Iterator[Executed | Mark | KernelEnd]:
        """Yield what is of interest on a line, in the order of time."""
        texts, names = self.plane.stats, self.plane.events
        task: list[int] = []
        """Where the kernels of the thread's current task begin."""
        reached: dict[HostTask, int] = {}
        for event in self.space.events(line, ignored):
            kind = kinds.get(event.name)
            found: dict[str, str | int] = {}
            title = names[event.name].title if event.name in names else ""
            if kind is None:
                found = stats(event.stats, wanted, texts)
                if (kind := _kind(title, found)) is None:
                    ignored.add(event.name)
                    continue
                kinds[event.name] = kind
            end = event.start + event.duration
            match kind:
                case _Kind.TASK:
                    task = []
                case _Kind.EXECUTE:
                    task.append(event.start)
                case _Kind.WORK:
                    self._add_work(title, event, reached)
                case _Kind.KERNEL:
                    found = found or stats(event.stats, wanted, texts)
                    if "hlo_op" not in found:
                        continue  # an annotation with the name of a kernel
                    if len(task) > 2 * _MOST_IN_TASK:
                        task = task[-_MOST_IN_TASK:]
                    task.append(event.start)
                    yield _kernel(event.start, end, title, found)
                case _Kind.ENDED:
                    found = found or stats(event.stats, wanted, texts)
                    yield KernelEnd(event.start, int(found.get("_c", 0)), task, len(task))
                case _Kind.STEP:
                    found = found or stats(event.stats, wanted, texts)
                    mark = Mark(event.start, end, title, int(found.get("step_num", 0)))
                    if len(self.marks) < _MOST_STEPS:
                        self.marks.append(mark)
                        yield mark

    def _add_work(self, title: str, event: XEvent, reached: dict[HostTask, int]) -> None:
        """Add a host's work, without what is inside of other work of its kind."""
        work = next(work for work, pattern in _WORK if pattern.fullmatch(title))
        end, last = event.start + event.duration, reached.get(work, 0)
        total = self.work.setdefault(work, HostWork())
        if event.start >= last:
            total.calls += 1
        if end > last:
            total.time += end - max(event.start, last)
            reached[work] = end


def _kind(title: str, found: dict[str, str | int]) -> _Kind | None:
    if "hlo_op" in found:
        return _Kind.KERNEL
    if "step_num" in found:
        return _Kind.STEP
    if title == _EXECUTE:
        return _Kind.EXECUTE
    if title == _TASK:
        return _Kind.TASK
    if title.startswith("end: ") and "_c" in found:
        return _Kind.ENDED
    return _Kind.WORK if any(pattern.fullmatch(title) for _, pattern in _WORK) else None


def _kernel(start: int, end: int, title: str, found: dict[str, str | int]) -> Executed:
    op = str(found["hlo_op"])
    run = found.get("run_id")
    return Executed(
        start,
        end,
        f"CPU:{found.get('device_ordinal', 0)}",
        program_name(found),
        op,
        title if title != op else "",
        int(run) if run is not None else None,
        int(found.get("_p", 0)),
    )


def program_name(found: dict[str, str | int]) -> str:
    """Return a program's name and number, as the plane of programs has them."""
    name = str(found.get("hlo_module", ""))
    number = found.get("program_id")
    return f"{name}({number})" if name and number is not None else name


def _completed(events: Iterator[Executed | Mark | KernelEnd]) -> Iterator[Executed | Mark]:
    """Yield kernels with the end that another event has, still in the order of their start."""
    waiting: dict[int, Executed] = {}
    ready: list[Executed | Mark] = []
    for event in events:
        match event:
            case Executed(flow=flow) if flow:
                waiting[flow] = event
            case KernelEnd(end, flow, task, begun):
                if (kernel := waiting.pop(flow, None)) is None:
                    continue
                after = bisect_right(task, kernel.start, hi=begun)
                end = task[after] if after < begun else end
                heapq.heappush(ready, kernel._replace(end=max(kernel.end, end)))
            case _:
                heapq.heappush(ready, event)
        if len(waiting) > _HELD:
            heapq.heappush(ready, waiting.pop(next(iter(waiting))))
        first = next(iter(waiting.values())).start if waiting else None
        while ready and (first is None or ready[0].start <= first):
            yield heapq.heappop(ready)
    for kernel in waiting.values():
        heapq.heappush(ready, kernel)
    while ready:
        yield heapq.heappop(ready)
