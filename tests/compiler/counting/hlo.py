"""An own count of optimized HLO: recursive, by regular expressions, without the product's
reader.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][a-z0-9\-]*)\((.*)$")
_NESTED = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(\(.*\)|\(.*?\)|\S+) ([a-z][a-z0-9\-]*)\((.*)$")
_TYPE = re.compile(r"([a-z]+[0-9a-z]*)\[([0-9,]*)\]")
_SIZES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4,
    "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16, "token": 0,
}  # fmt: skip
_NOTHING = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier",
    "partition-id", "replica-id", "add-dependency", "domain",
}  # fmt: skip


@dataclass
class Line:
    """One instruction."""

    name: str
    type: str
    opcode: str
    rest: str

    def computations(self, role: str) -> list[str]:
        """The computations that it names as `role`."""
        named = re.search(rf"\b{role}=(\{{[^}}]*\}}|%?[\w.\-]+)", self.rest)
        return re.findall(r"[\w.\-]+", named[1]) if named else []


@dataclass
class Counted:
    """What one run launches: by instruction the most and the fewest times, and bytes of one
    launch.
    """

    launches: dict[str, tuple[int, int]] = field(default_factory=dict)
    moved: dict[str, tuple[int, int]] = field(default_factory=dict)
    most: int = 0
    fewest: int = 0
    trips: list[int | None] = field(default_factory=list)
    """Of all loops, each before those within it."""

    holding: set[str] = field(default_factory=set)
    """Instructions that run others."""

    @property
    def known(self) -> bool:
        """Whether every trip count is known."""
        return None not in self.trips


def parsed(text: str) -> tuple[dict[str, list[Line]], str]:
    """The instructions of each computation, and the name of the entry."""
    computations: dict[str, list[Line]] = {}
    entry = current = ""
    for line in text.splitlines():
        if line and line[0] not in " }" and line.endswith("{") and not line.startswith("Hlo"):
            current = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0].split("(")[0]
            computations[current] = []
            entry = current if line.startswith("ENTRY") else entry
        elif line.startswith(" ") and current:
            matched = _LINE.match(line) or _NESTED.match(line)
            if matched is None:
                raise ValueError(line)
            computations[current].append(Line(matched[2], matched[3], matched[4], matched[5]))
    return computations, entry


def count(text: str) -> Counted:
    """Count an optimized module; every instruction that is launched is launched once."""
    computations, entry = parsed(text)
    counted = Counted()
    counted.most, counted.fewest = _run(computations, entry, 1, 1, counted)
    return counted


def _run(
    computations: dict[str, list[Line]],
    name: str,
    most: int,
    fewest: int,
    counted: Counted,
) -> tuple[int, int]:
    total, least = 0, 0
    lines = computations[name]
    types = {line.name: line.type for line in lines}
    for line in lines:
        if line.opcode in _NOTHING or line.opcode.endswith("-done"):
            continue
        if line.opcode == "while":
            found = re.search(r'known_trip_count":\{"n":"?(\d+)', line.rest)
            times = (int(found[1]),) * 2 if found else (1, 0)
            counted.trips.append(int(found[1]) if found else None)
            again = (0, 0) if found else (1, 1)
            parts = [("body", times), ("condition", again)]
            counted.holding.add(line.name)
        elif line.opcode == "call" and 'xla_cpu_small_call="true"' not in line.rest:
            parts = [("to_apply", (1, 1))]
            counted.holding.add(line.name)
        elif line.opcode == "conditional":
            counted.holding.add(line.name)
            arms = line.computations("branch_computations") or [
                *line.computations("true_computation"),
                *line.computations("false_computation"),
            ]
            sums = [_run(computations, arm, most, fewest, counted) for arm in arms]
            total += max(each[0] for each in sums)
            least += min(each[1] for each in sums)
            continue
        else:
            before = counted.launches.get(line.name, (0, 0))
            counted.launches[line.name] = before[0] + most, before[1] + fewest
            names = dict.fromkeys(re.findall(r"%([\w.\-]+)(#\d+)?", operands(line.rest)))
            read = sum(bytes_of(element(types[name], index)) for name, index in names)
            started = line.opcode.endswith("-start")
            counted.moved[line.name] = read, bytes_of(element(line.type, "#1" if started else ""))
            total += most
            least += fewest
            continue
        for role, times in parts:
            for inner in line.computations(role):
                run = most * times[0], fewest * times[1]
                inside = _run(computations, inner, *run, counted)
                total, least = total + inside[0], least + inside[1]
    return total, least


def element(type_: str, index: str) -> str:
    """The type of `%name#1`."""
    if not index:
        return type_
    flat = re.sub(r"\{[^}]*\}|/\*.*?\*/|\[[^\]]*\]", lambda m: "?" * len(m[0]), type_)[1:-1]
    depth, cuts = 0, [-1]
    for at, letter in enumerate(flat):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            cuts.append(at)
    cuts.append(len(flat))
    at = int(index[1:])
    return type_[1:-1][cuts[at] + 1 : cuts[at + 1]]


def operands(rest: str) -> str:
    depth = 1
    for at, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return rest[:at]
    return rest


def bytes_of(type_: str) -> int:
    return sum(
        _SIZES[dtype] * math.prod(int(size) for size in sizes.split(",") if size)
        for dtype, sizes in _TYPE.findall(re.sub(r"\{[^}]*\}|/\*.*?\*/", "", type_))
    )
