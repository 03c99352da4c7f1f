"""Read the files of a run, and return what they say."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from jaxsight.profiles import programs, protobuf
from jaxsight.profiles.host_lines import PLANE, HostLines, HostTask, program_name
from jaxsight.profiles.places import CodePlace, LibraryPlace, library_of
from jaxsight.profiles.profile import Profile, ProfiledDevice, ProfiledHost, ProfiledKernel
from jaxsight.profiles.programs import ProfiledInstruction
from jaxsight.profiles.sources import ProfileFiles
from jaxsight.profiles.space import PROGRAMS, EventName, XLine, XPlane, XSpace, opened, stats
from jaxsight.profiles.timeline import (
    Executed,
    KernelKey,
    KernelTotal,
    Mark,
    Timeline,
    innermost,
    ordered,
)

# What a GPU or a TPU executed.
#
# A GPU's plane has a line `Stream #N(…)` for each stream. Its events are kernels, copies and clears
# under the names of the driver, with the instruction as their statistic `hlo_op`
# (`xla/backends/profiler/gpu/cupti_collector.cc`). A TPU's plane has the lines `XLA Ops` (events
# are instructions), `XLA Modules` (executions of programs) and `Async XLA Ops`
# (`xla/tsl/profiler/utils/xplane_schema.cc`).

PREFIXES: Final = ("/device:GPU:", "/device:TPU:")
_STREAM = "Stream #"
_OPS, _ASYNC_OPS, _MODULES, _STEPS = "XLA Ops", "Async XLA Ops", "XLA Modules", "Steps"
_WANTED = ("hlo_op", "hlo_module", "program_id", "hlo_category", "source")
_MOST_KNOWN = 100_000
"""Different statistics of kernels that are kept, a choice: a program has some thousands."""
_OP = re.compile(r"%?([\w.-]+)")


@dataclass(frozen=True, slots=True)
class DeviceLines:
    """The lines of a device."""

    space: XSpace
    plane: XPlane

    @property
    def device(self) -> str:
        """Its name, such as `GPU:0`."""
        return self.plane.name.removeprefix("/device:")

    def executed(self, marks: list[Mark]) -> Iterator[Executed | Mark]:
        """Yield what was executed, in the order of its start, between the marks of steps."""
        wanted = self.plane.wanted(_WANTED)
        streams = [line for line in self.plane.lines if line.name.startswith(_STREAM)]
        lines: list[Iterator[Executed | Mark]] = [
            ordered(self._stream(line, wanted)) for line in streams
        ]
        if not streams:
            runs = sorted(self._titled(_MODULES))
            for line in self.plane.lines:
                if line.name == _OPS:
                    lines.append(ordered(innermost(self._ops(line, wanted, runs))))
                elif line.name == _ASYNC_OPS:
                    lines.append(ordered(self._ops(line, wanted, runs)))
        steps = [
            Mark(start, end, "step", int(title) if title.isdecimal() else 0)
            for start, end, title in self._titled(_STEPS)
        ]
        return heapq.merge(*lines, sorted(steps or marks), key=itemgetter(0))

    def _stream(self, line: XLine, wanted: dict[int, str]) -> Iterator[Executed]:
        """Yield the events of a GPU's stream."""
        device = self.device
        launches = self.plane.wanted({"correlation_id"})
        known: dict[tuple[int, bytes], tuple[str, str, str]] = {}
        for name, start, duration, data in self.space.events(line, set()):
            # The first statistic is the number of the launch; the others are those of the kernel.
            is_launch = len(data) > 3 and data[3] in launches
            key = name, data[2 + data[1] :] if is_launch else data
            if (of := known.get(key)) is None:
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                found = stats(data, wanted, self.plane.stats)
                op = str(found.get("hlo_op", ""))
                title = self.plane.events.get(name, EventName("", "")).title
                program = program_name(found) if op else ""
                of = known[key] = program, op, title if title != op else ""
            yield Executed(start, start + duration, device, *of)

    def _ops(
        self, line: XLine, wanted: dict[int, str], runs: list[tuple[int, int, str]]
    ) -> Iterator[Executed]:
        """Yield the events of a TPU's instructions; `runs` are those of programs by start."""
        device, is_async = self.device, line.name == _ASYNC_OPS
        known: dict[int, tuple[str, str, str, str]] = {}
        at = 0
        for event in self.space.events(line, set()):
            if event.name not in known:
                known[event.name] = self._named(event.name, wanted)
            program, op, source, opcode = known[event.name]
            while at + 1 < len(runs) and runs[at + 1][0] <= event.start:
                at += 1
            run = at if runs and runs[at][0] <= event.start < runs[at][1] else None
            if run is not None:
                program = runs[run][2]
            end = event.start + event.duration
            yield Executed(
                event.start, end, device, program, op, "", run, 0, is_async, source, opcode
            )

    def _named(self, key: int, wanted: dict[int, str]) -> tuple[str, str, str, str]:
        """Return program, instruction, source and category of events with a name."""
        name = self.plane.events.get(key, EventName("", ""))
        found = stats(name.stats, wanted, self.plane.stats)
        match = _OP.match(name.short or name.title)
        op = match[1] if match else ""
        category = str(found.get("hlo_category", ""))
        return program_name(found), op, str(found.get("source", "")), category

    def _titled(self, name: str) -> Iterator[tuple[int, int, str]]:
        """Yield begin, end and title of the events of a line."""
        for line in self.plane.lines:
            if line.name == name:
                for event in self.space.events(line, set()):
                    title = self.plane.events.get(event.name, EventName("", "")).title
                    yield event.start, event.start + event.duration, title


Progress = Callable[[int, int], None]
"""Called with the bytes that were read, and with those of all files."""
_ENVIRONMENT = "Task Environment"
_OFTEN = 20_000
"""Events between two reports of progress, a choice: some tens of milliseconds."""
_SOURCE = re.compile(r"(.+):(\d+)(?:-\d+)?")
"""The place of an instruction, as events of TPUs have it."""
_VERSIONS = ("jax_version", "jaxlib_version", "cuda_version", "libtpu_version")


@dataclass(slots=True)
class _Programs:
    """The programs of a host; each is read when the first kernel of it appears."""

    space: XSpace
    known: dict[str, dict[str, ProfiledInstruction]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def find(self, program: str, op: str) -> ProfiledInstruction | None:
        """Return an instruction."""
        if program not in self.known:
            self.known[program] = self.read(program)
        return self.known[program].get(op)

    def read(self, program: str) -> dict[str, ProfiledInstruction]:
        """Return the instructions of a program; none if the profile does not have it."""
        for plane in self.space.planes:
            if (part := plane.programs.get(program)) is None and program:
                # Before events had the number of their program: by name, if it is the only one.
                same = [name for name in plane.programs if name.partition("(")[0] == program]
                part = plane.programs[same[0]] if len(same) == 1 else None
            if part is not None:
                try:
                    return programs.read(self.space.bytes, part)
                except (ValueError, IndexError):
                    break
        self.missing.add(program)
        return {}


def read(files: ProfileFiles, progress: Progress | None = None) -> Profile:
    """Read a profile.

    Raises:
        NotAProfile: a file has another form, or is cut off.
        UnreadableError: a file cannot be read.
    """
    total = sum(path.stat().st_size for path in files.paths)
    hosts: list[ProfiledHost] = []
    devices: list[ProfiledDevice] = []
    merged: dict[KernelKey, list[KernelTotal]] = {}
    versions: dict[str, str] = {}
    notes: list[str] = []
    taken = 0.0
    done = 0
    for path in files.paths:
        with opened(path) as space:
            host = _Host(space, path.name, progress, done, total)
            host.read()
            done += space.bytes.size
        hosts.append(host.summary())
        devices += host.devices()
        for timeline in host.timelines.values():
            for key, each in timeline.kernels.items():
                if each.calls:
                    merged.setdefault(key, []).append(each)
        versions |= host.versions
        taken = min(filter(None, (taken, host.taken)), default=0.0)
        notes += host.notes
    kernels = sorted((_kernel(key, all) for key, all in merged.items()), key=lambda k: -k.seconds)
    return Profile(
        tuple(map(str, files.paths)),
        files.run,
        taken,
        tuple(versions.items()),
        tuple(hosts),
        tuple(devices),
        tuple(kernels),
        tuple(dict.fromkeys(notes)),
    )


class _Host:
    """Reads the profile of one host."""

    def __init__(
        self, space: XSpace, file: str, progress: Progress | None, done: int, total: int
    ) -> None:
        self.space = space
        self.name = next(iter(space.hosts), "") or file.partition(".")[0]
        self.timelines: dict[str, Timeline] = {}
        self.versions: dict[str, str] = {}
        self.notes: list[str] = []
        self.taken = self.seconds = 0.0
        self._work: dict[HostTask, tuple[int, float]] = {}
        self._programs = _Programs(space)
        self._progress = progress
        self._done, self._total = done, total

    def read(self) -> None:
        """Read all planes, the host's first, as it has the steps."""
        planes = self.space.planes
        marks: list[Mark] = []
        for plane in planes:
            if plane.name == PROGRAMS:
                own = _own(plane)
                self.versions |= {name: str(own[name]) for name in _VERSIONS if own.get(name)}
            elif plane.name == _ENVIRONMENT:
                own = _own(plane)
                start, stop = own.get("profile_start_time"), own.get("profile_stop_time")
                if isinstance(start, int):
                    self.taken = start / 1e9
                    self.seconds = max(0, stop - start) / 1e9 if isinstance(stop, int) else 0.0
        for plane in (each for each in planes if each.name == PLANE):
            lines = HostLines(self.space, plane)
            self._add(lines.executed())
            marks += lines.marks
            self._work |= {
                work: (each.calls, each.time / 1e12) for work, each in lines.work.items()
            }
        for plane in planes:
            if plane.name.startswith(PREFIXES):
                self._add(DeviceLines(self.space, plane).executed(marks))
        for program in sorted(self._programs.missing):
            self.notes.append(f"the profile has no HLO of {program or 'some kernels'}")

    def summary(self) -> ProfiledHost:
        """Return what the host did."""
        work = tuple((work, *self._work[work]) for work in HostTask if work in self._work)
        return ProfiledHost(self.name, self.seconds, work)

    def devices(self) -> list[ProfiledDevice]:
        """Return what each device did."""
        found = []
        for name, timeline in self.timelines.items():
            if not timeline.span:
                continue
            kind, steps = timeline.steps()
            kernels = sum(each.time for each in timeline.kernels.values())
            found.append(
                ProfiledDevice(
                    self.name,
                    name,
                    timeline.span / 1e12,
                    timeline.busy.time / 1e12,
                    kernels / 1e12,
                    timeline.idle_inside / 1e12,
                    timeline.idle_between / 1e12,
                    timeline.collectives.time / 1e12,
                    (timeline.either.time - timeline.computing.time) / 1e12,
                    kind,
                    tuple(steps),
                )
            )
        return found

    def _add(self, events: Iterable[Executed | Mark]) -> None:
        """Add the events of a plane to the timelines of its devices, and marks to all of them."""
        marks: list[Mark] = []
        timelines: dict[str, Timeline] = {}
        for count, event in enumerate(events):
            if count % _OFTEN == 0 and self._progress is not None:
                self._progress(self._done + self.space.bytes.done, self._total)
            if isinstance(event, Mark):
                marks.append(event)
                for timeline in timelines.values():
                    timeline.add(event)
                continue
            if event.device not in timelines:
                timelines[event.device] = Timeline(self._programs.find)
                for mark in marks:
                    timelines[event.device].add(mark)
            timelines[event.device].add(event)
        self.timelines |= timelines


def _own(plane: XPlane) -> dict[str, str | int]:
    """Return the statistics of a plane itself."""
    found: dict[str, str | int] = {}
    for data in plane.own:
        field = bytes([0x22]) + protobuf.number(len(data)) + data
        found |= stats(field, plane.stats, plane.stats)
    return found


def _kernel(key: KernelKey, totals: list[KernelTotal]) -> ProfiledKernel:
    """Return a kernel with the figures of all devices."""
    first = next((each for each in totals if each.instruction is not None), totals[0])
    found = first.instruction
    place = found.place if found else None
    if place is None and (match := _SOURCE.fullmatch(first.source)):
        library = library_of(match[1])
        place = LibraryPlace(library) if library else CodePlace(match[1], int(match[2]))
    return ProfiledKernel(
        name=key.op or key.title,
        title=key.title if key.op else "",
        program=key.program,
        opcode=found.opcode if found else "",
        place=place,
        lines=found.lines if found else (),
        scope=found.scope if found else "",
        is_for=found.is_for if found else False,
        is_collective=first.is_collective,
        is_transfer=first.is_transfer,
        calls=sum(each.calls for each in totals),
        seconds=sum(each.time for each in totals) / 1e12,
    )
