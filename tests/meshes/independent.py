"""Count the collectives of a compiled program in its HLO, without code of `jaxsight`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)

_BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128, "token": 0, "opaque": 0}
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-~]+) = (.*)$")
_ARRAY = re.compile(r"([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-~]+)"
)
_BRANCHES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"replica_groups=\{?mesh\[([^\]]*)\][^{]*\{([^}]*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{(.*?)\}\}")


@dataclass(frozen=True, order=True)
class Moved:
    """A collective: its kind, the bytes on one device, and the size of its groups."""

    kind: str
    bytes: int
    group_size: int


@dataclass(frozen=True)
class _Instruction:
    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    text: str


def collectives(hlo: str, devices: int) -> Counter[Moved]:
    """Return how often one run of the program executes each collective.

    A loop whose number of iterations is not known counts once. XLA for TPU writes a collective that
    overlaps with other work as a chain of fusions, which counts once, and a reduce-scatter as the
    fusion `all-reduce-scatter`.
    """
    computations, entry = _computations(hlo)
    total: Counter[Moved] = Counter()
    for instruction, times, name in _executed(computations, entry, 1):
        within = computations[name]
        moved = _moved(instruction, within, devices)
        if moved is None or ("chain_id=" in instruction.text and not _starts(within)):
            continue
        if name.startswith("all-reduce-scatter") and moved.kind == "all-reduce":
            moved = replace(moved, kind="reduce-scatter")
        total[moved] += times
    return total


def _starts(within: dict[str, _Instruction]) -> bool:
    return any('"AsyncCollectiveStart"' in each.text for each in within.values())


def _executed(
    computations: dict[str, dict[str, _Instruction]], name: str, times: int
) -> Iterator[tuple[_Instruction, int, str]]:
    for instruction in computations.get(name, {}).values():
        yield instruction, times, name
        if instruction.opcode in ("reduce", "sort", "scatter", "map", "reduce-window"):
            continue
        inner = times
        if instruction.opcode == "while":
            inner *= _trips(computations, instruction)
        if instruction.opcode.startswith(KINDS) or instruction.opcode in (
            "async-done",
            "async-update",
        ):
            continue
        called = _CALLED.findall(instruction.text)
        for branches in _BRANCHES.findall(instruction.text):
            called += [each.strip().lstrip("%") for each in branches.split(",")]
        for each in dict.fromkeys(called):
            yield from _executed(computations, each, inner)


def _trips(computations: dict[str, dict[str, _Instruction]], loop: _Instruction) -> int:
    """Return how often a loop runs: as XLA says, or what its counter, from 0, is compared with."""
    if known := _TRIPS.search(loop.text):
        return int(known[1])
    condition = re.search(r"condition=%?([\w.\-~]+)", loop.text)
    within = computations.get(condition[1], {}) if condition else {}
    for each in within.values():
        if each.opcode == "compare" and "direction=LT" in each.text:
            limit = re.search(r"constant\((\d+)\)", within[each.operands[1]].text)
            return int(limit[1]) if limit else 1
    return 1


def _moved(
    instruction: _Instruction, within: dict[str, _Instruction], devices: int
) -> Moved | None:
    kind = instruction.opcode.removesuffix("-start")
    if kind not in KINDS:
        return None
    result = instruction.type
    if instruction.opcode.endswith("-start"):
        done = [each for each in within.values() if instruction.name in each.operands]
        result = next((each.type for each in done if each.opcode.endswith("-done")), result)
    operands = sum(_size(within[each].type) for each in instruction.operands if each in within)
    return Moved(kind, max(operands, _size(result)), _group_size(instruction.text, devices))


def _group_size(text: str, devices: int) -> int:
    if pairs := _PAIRS.search(text):
        return pairs[1].count("{")
    if iota := _IOTA.search(text):
        return int(iota[1].split(",")[-1])
    if mesh := _MESH.search(text):
        sizes = dict(re.findall(r"'([^']+)'=(\d+)", mesh[1]))
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", mesh[2])
        return math.prod(int(part or sizes[name]) for name, part in axes)
    if groups := re.search(r"replica_groups=\{\{([\d,]*)\}", text):
        return groups[1].count(",") + 1
    return devices


def _size(type_: str) -> int:
    """Return the bytes of a type; of a tuple, those of all its elements."""
    total = 0
    for dtype, dimensions in _ARRAY.findall(re.sub(r"\{[^}]*\}", "", type_)):
        if dtype in _BITS:
            bits = _BITS[dtype]
        else:
            number = re.search(r"\d+", dtype)
            bits = int(number[0]) if number else 0
        elements = math.prod(int(each) for each in dimensions.split(",") if each)
        total += math.ceil(elements * bits / 8)
    return total


def _computations(hlo: str) -> tuple[dict[str, dict[str, _Instruction]], str]:
    computations: dict[str, dict[str, _Instruction]] = {}
    entry, current = "", {}
    for line in hlo.splitlines():
        if line.startswith(("HloModule", "//")) or not line.strip():
            continue
        if not line.startswith((" ", "}")) and line.rstrip().endswith("{"):
            name = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0].split("(")[0]
            current = computations.setdefault(name, {})
            entry = name if line.startswith("ENTRY ") else entry
        elif match := _INSTRUCTION.match(line):
            instruction = _instruction(match[1], match[2])
            if instruction is not None:
                current[instruction.name] = instruction
    return computations, entry


def _instruction(name: str, rest: str) -> _Instruction | None:
    type_, rest = _type_and_rest(rest)
    match = re.match(r"\s*([a-z][\w\-]*)\(", rest)
    if match is None:
        return None
    inside, depth = [], 1
    for character in rest[match.end() :]:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            break
        inside.append(character)
    operands = tuple(re.findall(r"%([\w.\-~]+)", "".join(inside)))
    return _Instruction(name, type_, match[1], operands, rest)


def _type_and_rest(text: str) -> tuple[str, str]:
    """Split after the type, which is a tuple in brackets or has no space outside of braces."""
    depth = 0
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character == " ":
            return text[:i], text[i:]
    return text, ""
