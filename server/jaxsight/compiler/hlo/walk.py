"""Which instructions of a module a run launches: what is reached from the entry through while, conditional and call.

The order is that of the text, an inner computation's units where it is called. A computation that is called twice gives its units twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.compiler.graph import Branch, Loop
from jaxsight.compiler.hlo.shapes import arrays, is_tiled
from jaxsight.compiler.hlo.text import Computation, Instruction, Module

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
"""Targets of custom calls that only say something to the compiler."""

_ENDS = ("-done", "-update")
_TRANSFERS = frozenset(
    {"copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"}
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)"?\}')
_SMALL_CALL = 'xla_cpu_small_call="true"'
_MANY = 2_000_000
"""Units after which a module is not followed further: calls of calls may be many more than its lines."""


@dataclass(slots=True, eq=False)
class Unit:
    """One instruction that is launched, where it is."""

    instruction: Instruction
    computation: Computation
    loops: tuple[int, ...]
    branch: int
    launches: int


@dataclass(slots=True, eq=False)
class Call:
    """One time that a computation is run: `caller` is the instruction that runs it, `role` as what."""

    computation: Computation
    units: dict[str, int] = field(default_factory=dict)
    """Which of its instructions are which unit, by name."""
    calls: dict[str, list[tuple[str, Call]]] = field(default_factory=dict)
    """The runs within it, by the calling instruction's name: (role, run), `body` and `condition` of a while, else the branches."""
    loops: dict[str, int] = field(default_factory=dict)
    """Which loop a while instruction is."""


@dataclass(slots=True, eq=False)
class Walk:
    """All of it."""

    module: Module
    conditions: bool = True
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


def walk(
    module: Module, *, conditions: bool = True, trips: Mapping[str, int] | None = None
) -> Walk:
    """Follow the entry computation.

    Args:
        conditions: whether the condition of a loop is run that has a known trip count.
        trips: the trip counts of loops, by their equations, where the HLO does not tell.
    """
    found = Walk(module, conditions=conditions, trips=trips or {})
    if module.entry is None:
        return found
    found.top = Call(module.entry)
    # An explicit stack: loops may be nested deeper than Python's.
    stack = [_Place(found.top, 0, (), -1, 1)]
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
            _enter(found, place, instruction, stack, [("call", name) for name in called])
        case "custom-call" if instruction.attribute("custom_call_target") in ANNOTATIONS:
            pass
        case _ if opcode in _TRANSFERS and is_tiled(instruction.shape):
            found.transfers += 1
        case _:
            place.call.units[instruction.name] = len(found.units)
            found.units.append(
                Unit(instruction, place.call.computation, place.loops, place.branch, place.launches)
            )


def _loop(found: Walk, place: _Place, instruction: Instruction, stack: list[_Place]) -> None:
    known = _TRIPS.search(instruction.attributes)
    trips = int(known[1]) if known else found.trips.get(instruction.equation)
    index = len(found.loops)
    found.loops.append(
        Loop(
            instruction.name,
            trips,
            place.loops[-1] if place.loops else -1,
            instruction.equation,
            place.branch,
            arrays(instruction.shape),
        )
    )
    place.call.loops[instruction.name] = index
    called = instruction.called
    inner = _Place(
        place.call,
        0,
        (*place.loops, index),
        place.branch,
        place.launches * (1 if trips is None else trips),
    )
    roles = [(role, name) for role in ("body", "condition") for name in called.get(role, ())]
    unasked = 0 if trips is not None and not found.conditions else inner.launches
    _enter(found, inner, instruction, stack, roles, condition_launches=unasked)


def _conditional(found: Walk, place: _Place, instruction: Instruction, stack: list[_Place]) -> None:
    called = instruction.called
    names = called.get("branch_computations") or (
        *called.get("true_computation", ()),
        *called.get("false_computation", ()),
    )
    first = len(found.branches)
    loop = place.loops[-1] if place.loops else -1
    for arm in range(len(names)):
        found.branches.append(
            Branch(instruction.name, arm, len(names), instruction.equation, loop, place.branch)
        )
    for arm, name in reversed(list(enumerate(names))):
        inner = _Place(place.call, 0, place.loops, first + arm, place.launches)
        _enter(found, inner, instruction, stack, [("branch", name)], first=True)


def _enter(
    found: Walk,
    place: _Place,
    instruction: Instruction,
    stack: list[_Place],
    roles: list[tuple[str, str]],
    *,
    first: bool = False,
    condition_launches: int = 0,
) -> None:
    """Go on with the computations that an instruction runs, the first of them first."""
    entered = []
    for role, name in roles:
        computation = found.module.computations.get(name)
        if computation is None:
            found.notes.append(f"{instruction.name} runs {name}, which is not there")
            continue
        run = Call(computation)
        entered.append((role, run))
        launches = condition_launches if role == "condition" else place.launches
        stack.append(_Place(run, 0, place.loops, place.branch, launches))
    if len(entered) > 1:
        stack[-len(entered) :] = reversed(stack[-len(entered) :])
    runs = place.call.calls.setdefault(instruction.name, [])
    runs[: 0 if first else len(runs)] = entered
