"""Run compiled programs on their device, and return what they took."""

from __future__ import annotations

import gc
import importlib.metadata
import itertools
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
from jax.profiler import StepTraceAnnotation
from jax.stages import Compiled, Traced

from jaxsight.measuring import machine, timing
from jaxsight.measuring.arguments import arguments
from jaxsight.profiles.host_lines import PLANE, HostLines
from jaxsight.profiles.reading import PREFIXES, DeviceLines
from jaxsight.profiles.sources import NoProfile, files_of
from jaxsight.profiles.space import NotAProfile, XSpace, opened
from jaxsight.profiles.timeline import Executed, Mark
from jaxsight.wire.messages.measuring import (
    Conditions,
    KernelTime,
    Measured,
    MeasuringLimits,
    ProgramTimes,
)

# What a device did while a function ran, from JAX's own profiler.
#
# `jax.profiler` writes the file that `jaxsight.profiles` reads, of JAX 0.8 and later.

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
        runs: how many runs are returned at most; there may be more, of which those are returned
            that get memory as before.
        prepare: what it does on the device before a run does not count.

    Raises:
        NoProfile: another profile is being made, or the profiler reports nothing about the device.
        NotAProfile: the profiler wrote something else.
    """
    began = time.perf_counter()
    usual = _page_faults(call, prepare())
    most = usual + _FEW_FAULTS if time.perf_counter() - began < _SHORT else sys.maxsize
    settled: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="jaxsight-profile-") as folder:
        try:
            machine.start_profile(folder)
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


MeasuringStage = Literal["wait", "compile", "measure", "profile"]
Announce = Callable[[MeasuringStage, str], None]
"""Called with each stage as it begins, and a detail for users."""

_PROFILED_SECONDS = 0.5
"""Time of the runs that are profiled, a choice: the file has 100 bytes for each kernel of a run."""
_MOST_PROFILED = 50
_COMMAND_BUFFERS = "xla_gpu_enable_command_buffer"
"""XLA's option for the commands that a GPU's runtime records and launches at once; without any,
each kernel is an event of the profile (`debug_options_flags.cc`)."""


ready: Callable[[object], object] = jax.block_until_ready
"""Waits for all arrays in a value, and returns it."""


class CannotMeasure(Exception):
    """The program cannot be run here; the message says why."""


@dataclass(frozen=True, slots=True)
class MeasuredProgram:
    """A compiled program that can be run: `call` gets what `prepare` returns.

    `call` returns when the results are ready.
    """

    call: Callable[..., object]
    prepare: Callable[[], object]
    hlo: str
    """The optimized HLO of the run that is profiled."""
    drawn: Sequence[str]
    """The arguments that are random."""
    lower_seconds: float
    compile_seconds: float
    call_with_events: Callable[..., object] | None = None
    """The same with an event for each kernel, if `call` is another: on GPUs, it has no command
    buffers."""
    has_command_buffers: bool | None = None


def compile_program(
    traced: Traced,
    names: Sequence[str],
    values: Mapping[str, object] | Sequence[object],
    donated: Sequence[int],
) -> MeasuredProgram:
    """Compile a traced function for the default device, and make its arguments.

    Args:
        traced: the function.
        names: the names of its flat arguments; fewer if they are not known.
        values: the user's own values by name, or for each argument; all others are random.
        donated: the flat arguments whose buffers a call takes: each call gets copies.

    Raises:
        CannotMeasure: it does not take the arguments of its program alone.
        Exception: any error of JAX's or XLA's about the program.
    """
    begin = time.perf_counter()
    lowered = traced.lower()
    middle = time.perf_counter()
    executable = lowered.compile()
    end = time.perf_counter()
    with_events, has_command_buffers = executable, None
    if default_device().platform == "gpu":
        has_command_buffers = True
        try:
            with_events = lowered.compile(compiler_options={_COMMAND_BUFFERS: ""})
        except Exception:  # noqa: BLE001 - a version of XLA without the option
            has_command_buffers = None
    values, drawn = arguments(traced.jaxpr, names, values)
    if executable.in_tree.num_leaves != len(values):
        raise CannotMeasure("its arguments are not those of its program")
    flat = _placed(executable, values)
    # Each run begins at once after the one before: threads that wait for work fall asleep soon.
    always: object = jax.tree_util.tree_unflatten(executable.in_tree, flat)

    def prepare() -> object:
        if not donated:
            return always
        given = [
            jnp.copy(value) if at in donated and isinstance(value, jax.Array) else value
            for at, value in enumerate(flat)
        ]
        ready(given)
        return jax.tree_util.tree_unflatten(executable.in_tree, given)

    return MeasuredProgram(
        _waiting(executable),
        prepare,
        with_events.as_text() or "",
        drawn,
        middle - begin,
        end - middle,
        None if with_events is executable else _waiting(with_events),
        has_command_buffers,
    )


def _waiting(executable: Compiled) -> Callable[..., object]:
    """Return a function that calls a program with `(args, kwargs)`, and waits for its results."""

    def call(prepared: tuple[tuple[object, ...], dict[str, object]]) -> object:
        args, kwargs = prepared
        return ready(executable(*args, **kwargs))

    return call


def _placed(executable: Compiled, flat: Sequence[object]) -> Sequence[object]:
    """Return arguments on the devices of a program, so that no call moves them."""
    shardings: list[object] = jax.tree_util.tree_leaves(executable.input_shardings)
    if len(shardings) != len(flat):  # those of arguments that the program does not use
        shardings = [None] * len(flat)
    placed = list(map(jax.device_put, flat, shardings))
    ready(placed)
    return placed


def measured(
    compiling: Sequence[Callable[[], MeasuredProgram]],
    limits: MeasuringLimits,
    announce: Announce,
    id: int = 0,
    device: jax.Device | None = None,
) -> Measured:
    """Compile and run one or two programs, and return what they took.

    Nothing else is measured on this machine meanwhile.

    Args:
        compiling: returns each program.
        limits: what ends the runs.
        announce: called with each stage.
        id: that of the request.
        device: the device that they run on, by default JAX's.

    Raises:
        Exception: whatever compiling or a run raises.
    """
    device = device or default_device()
    with machine.alone(lambda: announce("wait", "")) as waited:
        announce("compile", "")
        programs = [make() for make in compiling]
        announce("measure", "")
        runs = [timing.TimedRun(program.call, program.prepare) for program in programs]
        firsts = [run() for run in runs]
        timing.warm_up(runs)
        around = machine.OtherWork.now()
        samples = _timed(runs, limits)
        others = around.others()
        announce("profile", "")
        times = [
            _times(program, first, each, device)
            for program, first, each in zip(programs, firsts, samples, strict=True)
        ]
    conditions = Conditions(
        device.device_kind,
        device.platform,
        jax.__version__,
        importlib.metadata.version("jaxlib"),
        machine.cores(),
        around.load,
        others,
        machine.governor(),
        machine.clock_seconds(),
        waited,
        programs[0].has_command_buffers,
    )
    found = Measured(id, times[0], conditions)
    if len(times) > 1:
        found = replace(found, other=times[1], ratio=timing.ratio(*samples))
    return found


def _timed(runs: Sequence[timing.TimedRun], limits: MeasuringLimits) -> list[list[float]]:
    """Collect garbage before, and none within, as `timeit` does: it would interrupt a run."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        return timing.timed(runs, limits)
    finally:
        if was_enabled:
            gc.enable()


def _times(
    program: MeasuredProgram, first: float, samples: Sequence[float], device: jax.Device
) -> ProgramTimes:
    """Return the times of a program, with those of its kernels from a profile."""
    wall = timing.spread(samples)
    statistics = device.memory_stats() or {}
    times = ProgramTimes(
        wall,
        -1.0,
        -1.0,
        lower_seconds=program.lower_seconds,
        compile_seconds=program.compile_seconds,
        first_seconds=first,
        peak_bytes=int(statistics.get("peak_bytes_in_use", -1)),
        drawn=tuple(program.drawn),
        hlo=program.hlo,
    )
    runs = max(1, min(_MOST_PROFILED, wall.runs, int(_PROFILED_SECONDS / max(wall.median, 1e-9))))
    call = program.call
    if program.call_with_events is not None:
        call = program.call_with_events
        call(program.prepare())
    try:
        profile = profiled(device.platform, call, runs, program.prepare)
    except (NoProfile, NotAProfile) as error:
        return replace(times, profile_problem=str(error))
    return replace(
        times,
        device_seconds=profile.device_seconds,
        between_seconds=profile.between_seconds,
        host_seconds=profile.host_seconds,
        kernels=tuple(profile.kernels),
        transfers=tuple(profile.transfers),
        profiled_runs=len(profile.runs),
    )


def default_device() -> jax.Device:
    """Return the device that programs run on."""
    chosen = jax.config.values["jax_default_device"]
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices()[0]
