"""An own count of the collectives in optimized HLO: line by line, by regular expressions.

Groups are not expanded: only their size is read. Bytes of asynchronous collectives are those of the
line that ends them.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][a-z0-9\-]*)\((.*)$")
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_TYPE = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
    "collective-broadcast", "ragged-all-to-all",
)  # fmt: skip
_WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2,
           "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}  # fmt: skip

Counts = Counter[tuple[str, int, int]]
"""How often one run has a collective of a kind, bytes and group size."""


def collectives(text: str, *, loops: bool = True) -> Counts:
    """Count the collectives of one run, or each once regardless of loops."""
    bodies = _computations(text)
    types = {name: type_ for lines in bodies.values() for name, type_, _, _ in lines}
    times = _times(text, bodies) if loops else dict.fromkeys(bodies, 1)
    counts: Counts = Counter()
    for name, lines in bodies.items():
        if not _counts(name, lines, text) or not times.get(name):
            continue
        for own, type_, opcode, rest in lines:
            kind = opcode.removesuffix("-start")
            if kind not in _KINDS:
                continue
            result = type_
            if opcode.endswith("-start"):
                result = next(
                    type_
                    for _, type_, other, after in lines
                    if other == f"{kind}-done" and re.match(rf"[^)]*%?{re.escape(own)}\b\)", after)
                )
            operands = re.findall(r"%([\w.\-]+(?:#\d+)?)", rest.split(")", 1)[0])
            sent = sum(_bytes(types[each]) for each in operands)
            counts[kind, max(sent, _bytes(result)), _size(rest, text)] += times[name]
    return counts


def _computations(text: str) -> dict[str, list[tuple[str, str, str, str]]]:
    bodies: dict[str, list[tuple[str, str, str, str]]] = {}
    current: list[tuple[str, str, str, str]] = []
    for line in text.split("\n"):
        if (head := _HEAD.match(line)) is not None:
            current = bodies.setdefault("ENTRY" if head[1] else head[2], [])
        elif (match := _LINE.match(line)) is not None:
            current.append((match[1], match[2], match[3], match[4]))
    return bodies


def _counts(name: str, lines: list[tuple[str, str, str, str]], text: str) -> bool:
    """Whether collectives of a computation count: not those that go on in a TPU's fusions."""
    inside = any(re.search(r'"AsyncCollectiveDone"', rest) for *_, rest in lines)
    return not inside and not name.startswith("async_collective_fusion")


def _times(text: str, bodies: dict[str, list[tuple[str, str, str, str]]]) -> dict[str, int]:
    """How often each computation runs, from those that name it."""
    callers: dict[str, list[tuple[str, int]]] = {name: [] for name in bodies}
    for name, lines in bodies.items():
        for *_, rest in lines:
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', rest)
            roles = r"\b(body|condition|calls|to_apply|true_computation|false_computation)"
            for role, called in re.findall(rf"{roles}=%?([\w.\-]+)", rest):
                many = int(trips[1]) if role == "body" and trips else 1
                callers.setdefault(called, []).append((name, many))
            if (arms := re.search(r"branch_computations=\{([^}]*)\}", rest)) is not None:
                for called in re.findall(r"[\w.\-]+", arms[1]):
                    callers.setdefault(called, []).append((name, 1))

    def runs(name: str) -> int:
        if name == "ENTRY":
            return 1
        return sum(many * runs(caller) for caller, many in callers[name])

    return {name: runs(name) for name in bodies}


def _bytes(text: str) -> int:
    return sum(
        _WIDTHS[dtype] * math.prod(int(size) for size in sizes.split(",") if size)
        for dtype, sizes in _TYPE.findall(text)
        if dtype in _WIDTHS
    )


def _size(rest: str, text: str) -> int:
    if "source_target_pairs=" in rest:
        return 2
    groups = rest.split("replica_groups=", 1)[1]
    if groups.startswith("{{"):
        return groups[2 : groups.index("}")].count(",") + 1
    if groups.startswith("{}"):
        return int(re.search(r"(?:num_partitions|replica_count)=(\d+)", text)[1])  # type: ignore[index]
    if groups.startswith("["):
        return int(groups[1 : groups.index("]")].split(",")[1])
    axes = dict(re.findall(r"'(\w+)'=(\d+)", groups[: groups.index("]")]))
    named = re.search(r"\s\{([^}]*)\}", groups)
    assert named is not None
    return math.prod(
        int(part or axes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named[1])
    )
