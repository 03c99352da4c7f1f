"""Find the instructions that a run launches, from the entry through while, conditional and call.

The order is that of the text; the units of an inner computation come at the place of its call.
A computation that is called twice has its units twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.compiler.hlo import sorts
from jaxsight.compiler.hlo.shapes import arrays, is_tiled
from jaxsight.compiler.hlo.text import Computation, Instruction, Module
from jaxsight.wire.kernel_graph import Branch, Loop

FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "opt-barrier",
        "partition-id",
        "replica-id",
        "add-dependency",
        "domain",
    }
)
"""Instructions that launch nothing."""

ANNOTATIONS = frozenset(
    {
        "ConcatBitcast",
        "AssumeGatherIndicesInBound",
        "GatherScatterIndicesBitpacked",
        "AllocateBuffer",
        "CreateBuffer",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "LayoutConstraint",
        "MoveToHost",
        "MoveToDevice",
        "PinToDevice",
        "Unpin",
        "annotate_device_placement",
        "InspectSharding",
        "NoOp",
        "xla.sdy.FuncResultSharding",
    }
)
"""Targets of custom calls that are only annotations for the compiler."""

_ENDS = ("-done", "-update")
_TRANSFERS = frozenset(
    {"copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"}
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)"?\}')
_SMALL_CALL = 'xla_cpu_small_call="true"'
_MANY = 2_000_000
"""Maximum number of units of a module: nested calls may have many more units than lines."""


@dataclass(slots=True, eq=False)
class Unit:
    """An instruction that is launched, with its context."""

    instruction: Instruction
    computation: Computation
    loops: tuple[int, ...]
    branch: int
    launches: int
    at_least: int


@dataclass(slots=True, eq=False)
class Call:
    """A run of a computation."""

    computation: Computation
    units: dict[str, int] = field(default_factory=dict)
    """Units of its instructions, by name."""
    calls: dict[str, list[tuple[str, Call]]] = field(default_factory=dict)
    """Inner runs by the name of the calling instruction, each with its role.

    The roles are `body` and `condition` for a while, `branch` for a conditional, and `call`.
    """
    loops: dict[str, int] = field(default_factory=dict)
    """Loops of its while instructions, by name."""


@dataclass(slots=True, eq=False)
class Walk:
    """The result: units, loops and branches of a module."""

    module: Module
    platform: str = "cpu"
    trips: Mapping[str, int] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    transfers: int = 0
    top: Call | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Place:
    call: Call
    at: int
    loops: tuple[int, ...]
    branch: int
    launches: int
    at_least: int


def walk(module: Module, *, platform: str = "cpu", trips: Mapping[str, int] | None = None) -> Walk:
    """Follow the entry computation.

    Args:
        platform: the target's platform, `cpu`, `cuda`, `rocm` or `tpu`.
        trips: trip counts of loops by their equations, for loops whose trip count is not in the
            HLO.
    """
    found = Walk(module, platform=platform, trips=trips or {})
    if module.entry is None:
        return found
    found.top = Call(module.entry)
    # An explicit stack, as loops may be nested deeper than Python's recursion limit.
    stack = [_Place(found.top, 0, (), -1, 1, 1)]
    while stack:
        place = stack[-1]
        if place.at >= len(place.call.computation.instructions):
            stack.pop()
            continue
        instruction = place.call.computation.instructions[place.at]
        place.at += 1
        if len(found.units) > _MANY:
            found.notes.append(f"only the first {_MANY} kernels are counted")
            break
        _visit(found, place, instruction, stack)
    return found


def _visit(found: Walk, place: _Place, instruction: Instruction, stack: list[_Place]) -> None:
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith(_ENDS):
        return
    match opcode:
        case "while":
            _loop(found, place, instruction, stack)
        case "conditional":
            _conditional(found, place, instruction, stack)
        case "call" if _SMALL_CALL not in instruction.attributes:
            called = instruction.called.get("to_apply", ())
            runs = [_run(found, place, instruction, "call", name) for name in called]
            _enter(place, instruction, stack, runs)
        case "custom-call" if instruction.attribute("custom_call_target") in ANNOTATIONS:
            pass
        case _ if opcode in _TRANSFERS and is_tiled(instruction.shape):
            found.transfers += 1
        case _:
            place.call.units[instruction.name] = len(found.units)
            found.units.append(_unit(found, place, instruction))


def _unit(found: Walk, place: _Place, instruction: Instruction) -> Unit:
    computation = place.call.computation
    sort = sorts.launches(found.module, computation, instruction, found.platform)
    least, most = (1, 1) if sort is None else (sort.least, sort.most)
    return Unit(
        instruction,
        computation,
        place.loops,
        place.branch,
        place.launches * most,
        place.at_least * least,
    )


def _loop(found: Walk, place: _Place, instruction: Instruction, stack: list[_Place]) -> None:
    known = _TRIPS.search(instruction.attributes)
    trips = int(known[1]) if known else found.trips.get(instruction.equation)
    index = len(found.loops)
    # XLA's `WhileThunk` on CPUs and GPUs runs the body for the trip count of the HLO and never runs
    # the condition (`xla/backends/{cpu,gpu}/runtime/while_thunk.cc`). Without a trip count, and on
    # TPUs, the condition runs once more than the body.
    counted = known is not None and found.platform != "tpu"
    found.loops.append(
        Loop(
            instruction.name,
            trips,
            place.loops[-1] if place.loops else -1,
            instruction.equation,
            place.branch,
            arrays(instruction.shape),
            waits=not counted and found.platform in ("cuda", "rocm"),
        )
    )
    place.call.loops[instruction.name] = index
    body = (1, 0) if trips is None else (trips, trips)
    condition = (0, 0) if counted else (1, 1) if trips is None else (trips + 1, trips + 1)
    called = instruction.called
    loops = (*place.loops, index)
    runs = [
        _run(found, place, instruction, role, name, loops=loops, times=times)
        for role, times in (("body", body), ("condition", condition))
        for name in called.get(role, ())
    ]
    _enter(place, instruction, stack, runs)


def _conditional(found: Walk, place: _Place, instruction: Instruction, stack: list[_Place]) -> None:
    called = instruction.called
    names = called.get("branch_computations") or (
        *called.get("true_computation", ()),
        *called.get("false_computation", ()),
    )
    first = len(found.branches)
    loop = place.loops[-1] if place.loops else -1
    runs = []
    for arm, name in enumerate(names):
        found.branches.append(
            Branch(instruction.name, arm, len(names), instruction.equation, loop, place.branch)
        )
        runs.append(_run(found, place, instruction, "branch", name, branch=first + arm))
    _enter(place, instruction, stack, runs)


def _run(
    found: Walk,
    place: _Place,
    instruction: Instruction,
    role: str,
    name: str,
    *,
    loops: tuple[int, ...] | None = None,
    branch: int | None = None,
    times: tuple[int, int] = (1, 1),
) -> tuple[str, _Place] | None:
    """Return the start of a run of a computation with its role, or `None` if it does not exist.

    `times` is the maximum and minimum number of runs.
    """
    computation = found.module.computations.get(name)
    if computation is None:
        found.notes.append(f"{instruction.name} calls {name}, which is not in the module")
        return None
    most, least = times
    return role, _Place(
        Call(computation),
        0,
        place.loops if loops is None else loops,
        place.branch if branch is None else branch,
        place.launches * most,
        place.at_least * least,
    )


def _enter(
    place: _Place,
    instruction: Instruction,
    stack: list[_Place],
    runs: list[tuple[str, _Place] | None],
) -> None:
    """Push the computations that an instruction runs on the stack, the first on top."""
    entered = [run for run in runs if run is not None]
    stack += [inner for _, inner in reversed(entered)]
    calls = place.call.calls.setdefault(instruction.name, [])
    calls += [(role, inner.call) for role, inner in entered]
