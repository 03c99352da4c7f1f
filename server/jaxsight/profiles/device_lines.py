"""What a GPU or a TPU executed.

A GPU's plane has a line `Stream #N(…)` for each stream. Its events are kernels, copies and clears
under the names of the driver, with the instruction as their statistic `hlo_op`
(`xla/backends/profiler/gpu/cupti_collector.cc`). A TPU's plane has the lines `XLA Ops` (events are
instructions), `XLA Modules` (executions of programs) and `Async XLA Ops`
(`xla/tsl/profiler/utils/xplane_schema.cc`).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from jaxsight.profiles.executed import Executed, Mark, innermost, ordered
from jaxsight.profiles.host_lines import program_name
from jaxsight.profiles.space import EventName, XLine, XPlane, XSpace, stats

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
        wanted = {self.plane.key(name): name for name in _WANTED}
        wanted.pop(-1, None)
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
        launch = self.plane.key("correlation_id")
        known: dict[tuple[int, bytes], tuple[str, str, str]] = {}
        for name, start, duration, data in self.space.events(line, set()):
            # The first statistic is the number of the launch; the others are those of the kernel.
            is_launch = len(data) > 3 and data[3] == launch
            key = name, data[2 + data[1] :] if is_launch else data
            of = known.get(key)
            if of is None:
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
