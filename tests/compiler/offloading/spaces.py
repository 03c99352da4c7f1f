"""An own count of what moves between the host and the device, from memory spaces alone.

By regular expressions, without the product's reader. The rule does not look at what operations do:

* from arrays on the host to one on the device: the result is moved to the device;
* from arrays on the device to one on the host: the result is moved to the host;
* from both to one on the host, which is an update in place: the largest other array is moved.
"""

from __future__ import annotations

import re
from collections import Counter

from tests.compiler.counting.hlo import Line, bytes_of, element, operands, parsed

Moved = tuple[str, int, int]
"""The direction, the bytes of one execution, and the executions."""

_ROLES = (
    "body", "condition", "to_apply", "branch_computations", "true_computation", "false_computation",
)  # fmt: skip
_LAUNCHES_NOTHING = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier",
}  # fmt: skip
_CALLBACK = re.compile(r'custom_call_target="[^"]*callback')


def count(text: str) -> Counter[Moved]:
    """Return what one run moves, without moves within the host."""
    computations, entry = parsed(text)
    found: Counter[Moved] = Counter()
    _run(computations, entry, 1, found)
    return found


def _run(computations: dict[str, list[Line]], name: str, times: int, found: Counter[Moved]) -> None:
    types = {line.name: line.type for line in computations[name]}
    for line in computations[name]:
        opcode = line.opcode
        if opcode in _LAUNCHES_NOTHING or opcode.endswith("-done") or "AllocateBuffer" in line.rest:
            continue
        inner = [(role, each) for role in _ROLES for each in line.computations(role)]
        if opcode in ("while", "conditional", "call"):
            trips = re.search(r'known_trip_count":\{"n":"?(\d+)', line.rest)
            for role, each in inner:
                runs = times * int(trips[1]) if trips and role == "body" else times
                _run(computations, each, runs, found)
            continue
        for direction, amount in _moves(line, types, computations):
            if amount:
                found[direction, amount, times] += 1


def _moves(
    line: Line, types: dict[str, str], computations: dict[str, list[Line]]
) -> list[tuple[str, int]]:
    named = re.findall(r"%([\w.\-]+)(#\d+)?", operands(line.rest))
    read = [element(types[name], index) for name, index in dict.fromkeys(named)]
    is_start = line.opcode.endswith("-start")
    written = element(line.type, "#0" if line.opcode == "copy-start" else "#1" if is_start else "")
    if line.opcode in ("send", "recv") and "is_host_transfer=true" in line.rest:
        if line.opcode == "send":
            return [("to host", _size(read[:1]))]
        return [("to device", _size([element(line.type, "#0")]))]
    if _CALLBACK.search(line.rest):
        return [("to host", _size(read)), ("to device", _size([line.type]))]
    if '"HostExecute"' in line.rest:
        moved = [("to host", _size([each])) for each in read if "S(5)" not in each]
        return [*moved, *([("to device", _size([written]))] if "S(5)" not in written else [])]
    for called in line.computations("calls"):
        within = {each.name: each.type for each in computations[called]}
        for each in computations[called]:
            if _CALLBACK.search(each.rest):
                return _moves(each, within, computations)
    on_host = ["S(5)" in each for each in read]
    if not any(on_host) and "S(5)" not in written:
        return []
    if "S(5)" not in written:
        return [("to device", _size([written]))]
    if not any(on_host):
        return [("to host", _size([written]))]
    others = [_size([each]) for each, is_there in zip(read, on_host, strict=True) if not is_there]
    return [("to host", max(others))] if others else []


def _size(types: list[str]) -> int:
    return sum(bytes_of(type_) for type_ in types)
