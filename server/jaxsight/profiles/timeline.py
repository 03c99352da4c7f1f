"""Add up what a device executed: kernels, busy and idle time, collectives, and its steps.

Events come in the order of their start. What is kept depends on the number of different kernels and
of executions of programs, not on the number of events.
"""

from __future__ import annotations

import heapq
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from jaxsight.profiles.programs import ProfiledInstruction, is_collective

# What a device executed, as the lines of a profile yield it.

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


_MOST_RUNS = 200_000
"""Executions of programs that are kept, a choice: of more, the first, which are steps enough."""

Find = Callable[[str, str], ProfiledInstruction | None]
"""Returns the instruction of a program (`jit_step(18)`) with a name."""


class KernelKey(NamedTuple):
    """What tells kernels apart."""

    program: str
    op: str
    title: str


@dataclass(slots=True)
class KernelTotal:
    """How often a kernel was executed, and for how long: times are in picoseconds."""

    instruction: ProfiledInstruction | None
    is_collective: bool
    is_transfer: bool
    source: str = ""
    calls: int = 0
    time: int = 0


@dataclass(slots=True)
class ProgramRun:
    """An execution of a program, or a step that was marked."""

    program: str
    start: int
    end: int
    busy_before: int
    """How long the device had been busy when it began."""
    number: int = 0
    busy_until: int = 0
    """How long it had been when the execution ended."""


class ProfiledStep(NamedTuple):
    """A step: its time from its begin to that of the next one, and how long the device was busy."""

    number: int
    seconds: float
    busy_seconds: float


class _Covered:
    """How long at least one of some intervals was open; they come in the order of their begin."""

    __slots__ = ("end", "time")

    def __init__(self) -> None:
        self.time = 0
        self.end = 0

    def add(self, start: int, end: int) -> None:
        """Add an interval."""
        if end > self.end:
            self.time += end - max(start, self.end)
            self.end = end


@dataclass(slots=True)
class Timeline:
    """The events of a device."""

    find: Find
    kernels: dict[KernelKey, KernelTotal] = field(default_factory=dict)
    first: int | None = None
    busy: _Covered = field(default_factory=_Covered)
    """Kernels, copies and clears."""
    collectives: _Covered = field(default_factory=_Covered)
    computing: _Covered = field(default_factory=_Covered)
    """All but collectives."""
    either: _Covered = field(default_factory=_Covered)
    """Collectives, also those beside the line of kernels, and all others."""
    idle_between: int = 0
    """Time in which no program ran, between two executions of programs."""
    idle_inside: int = 0
    """Time between kernels of one execution."""
    runs: list[ProgramRun] = field(default_factory=list)
    marks: list[ProgramRun] = field(default_factory=list)
    _by_number: dict[tuple[str, int], ProgramRun] = field(default_factory=dict)
    _current: dict[str, tuple[ProgramRun, set[str]]] = field(default_factory=dict)
    """The execution of each program without numbers, and the instructions that it had."""
    _last_op: str = ""
    _last: ProgramRun | None = None
    """The execution that the device worked on last."""

    def add(self, event: Executed | Mark) -> None:
        """Add the next event."""
        if isinstance(event, Mark):
            if len(self.marks) < _MOST_RUNS:
                before = self._busy_until(event.start)
                self.marks.append(
                    ProgramRun(event.name, event.start, event.end, before, event.number)
                )
            return
        key = KernelKey(event.program, event.op, event.title)
        if (total := self.kernels.get(key)) is None:
            total = self.kernels[key] = self._total(event)
        start, end = event.start, event.end
        if event.is_async:
            if total.is_collective:
                self.collectives.add(start, end)
                self.either.add(start, end)
            return
        total.calls += 1
        total.time += end - start
        if self.first is None:
            self.first = self.busy.end = start
        run = self._run(event, total)
        gap = start - self.busy.end
        if gap > 0:
            if run is self._last:
                self.idle_inside += gap
            else:
                self.idle_between += gap
        self.busy.add(start, end)
        self.either.add(start, end)
        (self.collectives if total.is_collective else self.computing).add(start, end)
        if run is not None:
            run.end = max(run.end, end)
            run.busy_until = self.busy.time
        self._last = run

    @property
    def span(self) -> int:
        """The time from the first kernel to the end of the last one."""
        return self.busy.end - self.first if self.first is not None else 0

    def steps(self) -> tuple[str, list[ProfiledStep]]:
        """Return what steps are, and the steps; nothing if there is none.

        They are executions of the program that took the most time, as the device did them: a host
        may mark many steps before the device begins with the first. If steps are marked, so many
        executions make one as fit; where that is not a whole number, steps are those of the host.
        """
        main = self._main()
        runs = [run for run in self.runs if run.program == main]
        if not (marks := self.marks):
            return (main, self._between(runs)) if main else ("", [])
        each, rest = divmod(len(runs), len(marks))
        if each and not rest:
            grouped = runs[::each]
            for run, mark in zip(grouped, marks, strict=True):
                run.number = mark.number
            return marks[0].program, self._between(grouped)
        return marks[0].program, self._between(marks)

    def _between(self, runs: Sequence[ProgramRun]) -> list[ProfiledStep]:
        found = []
        for at, run in enumerate(runs):
            if at + 1 < len(runs):
                end, busy = runs[at + 1].start, runs[at + 1].busy_before
            else:
                end, busy = run.end, run.busy_until or self._busy_until(run.end)
            seconds = (end - run.start) / 1e12
            found.append(ProfiledStep(run.number or at, seconds, (busy - run.busy_before) / 1e12))
        return found

    def _main(self) -> str:
        """Return the program with the most time, of those that were executed repeatedly."""
        times: Counter[str] = Counter()
        for key, total in self.kernels.items():
            times[key.program] += total.time
        counts = Counter(run.program for run in self.runs)
        repeated = [program for program in times if program and counts[program] > 1]
        return max(repeated, key=lambda program: times[program], default="")

    def _total(self, event: Executed) -> KernelTotal:
        instruction = self.find(event.program, event.op) if event.op else None
        opcode = (instruction.opcode if instruction else "") or event.opcode or event.op
        return KernelTotal(
            instruction,
            is_collective=is_collective(opcode)
            or is_collective(event.op)
            or "nccl" in event.title.lower(),
            is_transfer=event.is_transfer,
            source=event.source,
        )

    def _busy_until(self, time: int) -> int:
        """Return how long the device was busy before a time that is not before the last event."""
        return max(0, self.busy.time - max(0, self.busy.end - time))

    def _run(self, event: Executed, total: KernelTotal) -> ProgramRun | None:
        """Return the execution of a program that an event belongs to."""
        if not (program := event.program):
            return self._last
        if event.run is not None:
            run = self._by_number.get((program, event.run))
            if run is None and (run := self._begin(event)) is not None:
                self._by_number[program, event.run] = run
            return run
        is_entry = total.instruction is not None and total.instruction.is_entry
        current = self._current.get(program)
        is_again = is_entry and current is not None and event.op in current[1]
        if current is None or (is_again and event.op != self._last_op):
            if (begun := self._begin(event)) is None:
                return None
            current = self._current[program] = begun, set()
        if is_entry:
            current[1].add(event.op)
        self._last_op = event.op
        return current[0]

    def _begin(self, event: Executed) -> ProgramRun | None:
        if len(self.runs) >= _MOST_RUNS:
            return None
        run = ProgramRun(event.program, event.start, event.end, self._busy_until(event.start))
        self.runs.append(run)
        return run


def median(steps: Sequence[ProfiledStep]) -> float:
    """Return the median time of steps in seconds."""
    return statistics.median(step.seconds for step in steps) if steps else 0.0
