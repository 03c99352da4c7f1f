"""What a device did while a function ran, from JAX's own profiler.

`jax.profiler` writes the file that `jaxsight.profiles` reads, of JAX 0.4.35 and later on CPUs too.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
from jax.profiler import StepTraceAnnotation

from jaxsight.measuring import machine
from jaxsight.profiles.device_lines import PREFIXES, DeviceLines
from jaxsight.profiles.executed import Executed, Mark
from jaxsight.profiles.folders import NoProfile, files_of
from jaxsight.profiles.host_lines import PLANE, HostLines
from jaxsight.profiles.space import XSpace, opened
from jaxsight.wire.messages.measuring import KernelTime

_RUN = "jaxsight run"
"""The name of the step that a run is marked as."""
_SHORT = 0.1
"""Seconds of a run up to which it matters where the C library gets memory from, a choice."""
_FEW_FAULTS = 16
"""Page faults that a run may have more than the one before the profiler began, a choice: 10 µs."""
_PATIENCE = 1.0
"""Seconds in which runs without more page faults are awaited, a choice: memory settles in 0.3 s."""

_stop_trace: Callable[[], None] = jax.profiler.stop_trace


@dataclass(frozen=True, slots=True)
class DeviceRun:
    """What a device executed in one run, by its start, and when the run began and ended.

    Times are in picoseconds.
    """

    begin: int
    end: int
    events: Sequence[Executed]

    @property
    def busy(self) -> int:
        """The time in which at least one event ran."""
        total = until = 0
        for event in self.events:
            total += max(0, event.end - max(until, event.start))
            until = max(until, event.end)
        return total

    @property
    def span(self) -> int:
        """The time from the begin of the first event to the end of the last."""
        if not self.events:
            return 0
        return max(event.end for event in self.events) - self.events[0].start


@dataclass(frozen=True, slots=True)
class DeviceRuns:
    """What a device did in several runs of one program."""

    runs: Sequence[DeviceRun]

    @property
    def device_seconds(self) -> float:
        """Seconds in which the device was busy in one run, the median."""
        return statistics.median(run.busy for run in self.runs) / 1e12

    @property
    def between_seconds(self) -> float:
        """Seconds between the first and the last event of a run in which none ran, the median."""
        return statistics.median(run.span - run.busy for run in self.runs) / 1e12

    @property
    def host_seconds(self) -> float:
        """Seconds of a run before the first event and after the last, the median."""
        return statistics.median(run.end - run.begin - run.span for run in self.runs) / 1e12

    def times(self, name: Callable[[Executed], str]) -> list[KernelTime]:
        """Return calls and seconds by name in one run, the dearest first.

        Seconds are medians over the runs, so that one run that was interrupted has no weight; calls
        are means, as runs may differ.

        Args:
            name: the name under which an event counts; it is left out if that is empty.
        """
        seconds: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(self.runs))
        calls = Counter[str]()
        for index, run in enumerate(self.runs):
            for event in run.events:
                if named := name(event):
                    calls[named] += 1
                    seconds[named][index] += (event.end - event.start) / 1e12
        found = [
            KernelTime(named, calls[named] / len(self.runs), statistics.median(each))
            for named, each in seconds.items()
        ]
        return sorted(found, key=lambda each: -each.seconds)

    @property
    def kernels(self) -> list[KernelTime]:
        """The kernels by the instruction of the HLO, or by their own name without one."""
        return self.times(lambda event: "" if event.is_transfer else event.op or event.title)

    @property
    def transfers(self) -> list[KernelTime]:
        """Copies and clears of memory that are no instructions of the HLO."""
        return self.times(lambda event: event.title if event.is_transfer else "")


def profiled(
    platform: str,
    call: Callable[[object], object],
    runs: int,
    prepare: Callable[[], object] = lambda: None,
) -> DeviceRuns:
    """Run a function under the profiler, and return what the device did in each run.

    Args:
        platform: JAX's platform of the device: `gpu`, `tpu` or `cpu`.
        call: the function, which gets what `prepare` returns and has to wait until the device is
            done.
        runs: how many runs are returned; there may be more, of which those are returned that get
            memory as before.
        prepare: what it does on the device before a run does not count.

    Raises:
        NoProfile: another profile is being made, or the profiler reports nothing about the device.
        NotAProfile: the profiler wrote something else.
    """
    start = jax.profiler.start_trace
    if hasattr(jax.profiler, "ProfileOptions"):
        # Events of each Python function slow the host down.
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        start = functools.partial(start, profiler_options=options)
    began = time.perf_counter()
    usual = _page_faults(call, prepare())
    most = usual + _FEW_FAULTS if time.perf_counter() - began < _SHORT else sys.maxsize
    settled: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="jaxsight-profile-") as folder:
        try:
            start(folder)
        except RuntimeError as error:  # "Profile has already been started"
            raise NoProfile(f"the profiler does not start: {error}") from error
        try:
            end = time.perf_counter() + _PATIENCE
            for number in itertools.count():
                if number >= runs and (len(settled) >= runs or time.perf_counter() > end):
                    break
                prepared = prepare()
                with StepTraceAnnotation(_RUN, step_num=number):
                    faults = _page_faults(call, prepared)
                if faults <= most:
                    settled.add(number)
        finally:
            _stop_trace()
        marks, events = _read(Path(folder), platform)
    middles = [(event.start + event.end) // 2 for event in events]
    chosen = [mark for mark in marks if mark.number in settled] or marks
    found = [
        DeviceRun(start, end, events[bisect_left(middles, start) : bisect_left(middles, end)])
        for start, end, *_ in sorted(chosen)[:runs]
    ]
    if not any(each.events for each in found):
        raise NoProfile("the profiler reports nothing about the device")
    return DeviceRuns(found)


def _page_faults(call: Callable[[object], object], prepared: object) -> int:
    """Run once, and return how many pages of memory were new to the process.

    The C library may return the memory of a result to the system after each run, and it often does
    so for some time once the profiler has begun: `x + 1` of 4 MiB then has 1,014 page faults, and
    takes 960 µs instead of 90.
    """
    before = machine.page_faults()
    call(prepared)
    return machine.page_faults() - before


def _read(folder: Path, platform: str) -> tuple[list[Mark], list[Executed]]:
    """Return the runs of a profile, and what the platform's first device executed.

    A program for several devices runs on all of them alike; other figures are those of one, too.
    """
    marks: list[Mark] = []
    devices: dict[str, list[Executed]] = defaultdict(list)
    [path] = files_of(folder).paths
    with opened(path) as space:
        for event in _events(space):
            if isinstance(event, Executed):
                if not event.is_async:
                    devices[event.device].append(event)
            elif event.name == _RUN:
                marks.append(event)
    names = [name for name in devices if name.startswith(f"{platform.upper()}:")]
    return marks, sorted(devices[min(names)]) if names else []


def _events(space: XSpace) -> Iterator[Executed | Mark]:
    for plane in space.planes:
        if plane.name == PLANE:
            yield from HostLines(space, plane).executed()
        elif plane.name.startswith(PREFIXES):
            yield from DeviceLines(space, plane).executed([])
