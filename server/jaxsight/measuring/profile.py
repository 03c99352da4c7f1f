"""What a device did while a function ran, from JAX's own profiler.

`jax.profiler.trace` writes an XSpace, which `jax.profiler.ProfileData` reads; both are public, and
neither needs TensorFlow. On GPUs and TPUs a device has a plane, and its streams or cores have
lines. On CPUs an instruction of the HLO has an event in the lines of XLA's threads (`tf_XLA…`); its
stat `hlo_op` is the name of the instruction.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import jax
from jax.profiler import TraceAnnotation, start_trace

from jaxsight.wire.messages.measuring import KernelTime

_RUN = "jaxsight run"
"""The name of our own event around a run."""
_AROUND = ("while", "conditional", "call")
"""Instructions whose events on a CPU last as long as those inside of them, in any thread."""
_LINES = {"gpu": "Stream", "tpu": "XLA Ops"}
"""How the lines with a device's events begin, in its plane `/device:GPU:0` or `/device:TPU:0`."""
_TRANSFERS = ("memcpy", "memset")
"""How the names of events of copies and clears begin, those of no instruction of the HLO."""


_stop_trace: Callable[[], None] = jax.profiler.stop_trace


class NoProfile(Exception):
    """There is no profile; the message says why, in a clause."""


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """Something that a device ran; times are in nanoseconds."""

    name: str
    """The profiler's name: the instruction of the HLO on CPUs, the kernel of the code on GPUs."""
    instruction: str
    """The instruction of the HLO; empty if the profile does not tell."""
    begin: float
    end: float
    device: int = 0

    @property
    def is_transfer(self) -> bool:
        """Whether it copies or clears memory outside of the HLO's instructions."""
        return not self.instruction and self.name.lower().startswith(_TRANSFERS)


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """The device's events in one run, in their order, and when the run began and ended."""

    begin: float
    end: float
    events: Sequence[DeviceEvent]

    @property
    def busy(self) -> float:
        """Nanoseconds in which at least one event ran."""
        total = until = 0.0
        for event in self.events:
            total += max(0.0, event.end - max(until, event.begin))
            until = max(until, event.end)
        return total

    @property
    def span(self) -> float:
        """Nanoseconds from the begin of the first event to the end of the last."""
        if not self.events:
            return 0.0
        return max(event.end for event in self.events) - self.events[0].begin


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of several runs of one program."""

    runs: Sequence[ProfiledRun]

    @property
    def device_seconds(self) -> float:
        """Seconds in which the device was busy in one run, the median."""
        return statistics.median(run.busy for run in self.runs) / 1e9

    @property
    def between_seconds(self) -> float:
        """Seconds between the first and the last event of a run in which none ran, the median."""
        return statistics.median(run.span - run.busy for run in self.runs) / 1e9

    @property
    def host_seconds(self) -> float:
        """Seconds of a run before the first event and after the last, the median."""
        return statistics.median(run.end - run.begin - run.span for run in self.runs) / 1e9

    def times(self, name: Callable[[DeviceEvent], str]) -> list[KernelTime]:
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
                    seconds[named][index] += (event.end - event.begin) / 1e9
        found = [
            KernelTime(named, calls[named] / len(self.runs), statistics.median(each))
            for named, each in seconds.items()
        ]
        return sorted(found, key=lambda each: -each.seconds)

    @property
    def kernels(self) -> list[KernelTime]:
        """The kernels by the instruction of the HLO, or by their own name without one."""
        return self.times(
            lambda event: "" if event.is_transfer else event.instruction or event.name
        )

    @property
    def transfers(self) -> list[KernelTime]:
        """Copies and clears of memory that are no instructions of the HLO."""
        return self.times(lambda event: event.name if event.is_transfer else "")


def profiled(
    platform: str,
    call: Callable[[object], object],
    runs: int,
    prepare: Callable[[], object] = lambda: None,
) -> Profile:
    """Run a function under the profiler, and return what the device did in each run.

    Args:
        platform: JAX's platform of the device: `gpu`, `tpu` or `cpu`.
        call: the function, which gets what `prepare` returns and has to wait until the device is
            done.
        runs: how often it runs.
        prepare: what it does on the device before a run does not count.

    Raises:
        NoProfile: this JAX cannot read profiles, another profile is being made, or the profiler
            reports nothing about the device.
    """
    if not hasattr(jax.profiler, "ProfileData"):
        raise NoProfile(f"JAX {jax.__version__} does not read its profiles")
    with tempfile.TemporaryDirectory(prefix="jaxsight-profile-") as folder:
        try:
            start_trace(folder, profiler_options=_options())
        except RuntimeError as error:  # "Profile has already been started"
            raise NoProfile(f"the profiler does not start: {error}") from error
        try:
            for _ in range(runs):
                prepared = prepare()
                with TraceAnnotation(_RUN):
                    call(prepared)
        finally:
            _stop_trace()
        files = list(Path(folder).rglob("*.xplane.pb"))
        if len(files) != 1:
            raise NoProfile("the profiler wrote no profile")
        data = jax.profiler.ProfileData.from_file(str(files[0]))
    with warnings.catch_warnings():
        # jaxlib's own classes: "builtin type event_stats has no __module__ attribute".
        warnings.simplefilter("ignore", DeprecationWarning)
        spans = sorted(_runs(data))
        of_all = list(_of_devices(data, platform))
    # A program for several devices runs on all of them alike; other figures are those of one, too.
    first = min((event.device for event in of_all), default=0)
    events = sorted((each for each in of_all if each.device == first), key=lambda each: each.begin)
    found = list(_grouped(spans, events))
    if not any(each.events for each in found):
        raise NoProfile("the profiler reports nothing about the device")
    return Profile(found)


def _options() -> jax.profiler.ProfileOptions:
    """Return the options of a trace without events of Python, which slow the host down."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options


def _runs(data: jax.profiler.ProfileData) -> Iterator[tuple[float, float]]:
    """Yield when our runs began and ended."""
    for plane in data.planes:
        if plane.name.startswith("/host:"):
            for line in plane.lines:
                for event in line.events:
                    if event.name == _RUN:
                        yield event.start_ns, event.start_ns + event.duration_ns


def _of_devices(data: jax.profiler.ProfileData, platform: str) -> Iterator[DeviceEvent]:
    """Yield the devices' events; on CPUs, those that name an instruction of the HLO."""
    prefix = f"/device:{platform.upper()}:"
    threads: list[list[DeviceEvent]] = []
    for plane in data.planes:
        if platform == "cpu":
            threads += [
                [event for event in map(_event, line.events) if event.instruction]
                for line in plane.lines
            ]
        elif plane.name.startswith(prefix):
            number = plane.name.removeprefix(prefix)
            device = int(number) if number.isdecimal() else 0
            for line in plane.lines:
                if line.name.startswith(_LINES[platform]):
                    yield from (_event(event, device) for event in line.events)
    yield from _innermost(threads)


def _event(event: jax.profiler.ProfileEvent, device: int | None = None) -> DeviceEvent:
    """Return an event; on a CPU, it tells the device itself."""
    stats: dict[object, object] = dict(event.stats)
    instruction, ordinal = str(stats.get("hlo_op", "")), stats.get("device_ordinal")
    if device is None:
        device = ordinal if isinstance(ordinal, int) else 0
    end = event.start_ns + event.duration_ns
    return DeviceEvent(event.name, instruction, event.start_ns, end, device)


def _innermost(threads: Iterable[Sequence[DeviceEvent]]) -> Iterator[DeviceEvent]:
    """Yield the events that are around no others, of a CPU's threads.

    A loop has an event around those of its body, which may run in other threads; a small loop is
    one kernel, which has no others inside.
    """
    found: list[DeviceEvent] = []
    for events in threads:
        ordered = sorted(events, key=lambda event: (event.begin, -event.end))
        for event, after in zip_longest(ordered, ordered[1:]):
            if after is None or after.begin >= event.end or after.end > event.end:
                found.append(event)
    found.sort(key=lambda event: event.begin)
    begins = [event.begin for event in found]
    for index, event in enumerate(found):
        is_around = event.instruction.partition(".")[0] in _AROUND
        within = found[index + 1 : bisect_left(begins, event.end)] if is_around else ()
        if not any(other.end <= event.end for other in within):
            yield event


def _grouped(
    spans: Sequence[tuple[float, float]], events: Sequence[DeviceEvent]
) -> Iterator[ProfiledRun]:
    """Yield each run with the events whose middle is in it; both are in order."""
    at = 0
    for begin, end in spans:
        while at < len(events) and events[at].begin + events[at].end < 2 * begin:
            at += 1
        first = at
        while at < len(events) and events[at].begin + events[at].end < 2 * end:
            at += 1
        yield ProfiledRun(begin, end, events[first:at])
