"""Find the instructions that a run launches, from the entry through while, conditional and call.

The order is that of the text; the units of an inner computation come at the place of its call.
A computation that is called twice has its units twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.compiler.hlo.memory.transfers import Move, moves
from jaxsight.compiler.hlo.trips import count
from jaxsight.hlo.shapes import arrays, is_tiled
from jaxsight.hlo.text import Computation, Instruction, Module
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
"""Maximum number of units of a module, chosen to fit in memory: nested calls may have many more
than lines."""


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
class Moving:
    """An instruction that moves data between the host and the device, with its context."""

    unit: Unit
    moves: list[Move]
    before: int
    """The number of kernels before it, which is the index of its own if it is one."""


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
    moving: list[Moving] = field(default_factory=list)
    top: Call | None = None
    computations: dict[str, Computation | None] = field(default_factory=dict)
    """The computations that run, besides the entry."""
    notes: list[str] = field(default_factory=list)

    def runs(self, unit: Unit) -> int:
        """Return the iterations of the loops around an instruction; 0 if it is never launched."""
        trips = [self.loops[index].trips or 1 for index in unit.loops]
        return math.prod(trips) if unit.launches else 0


@dataclass(slots=True)
class _Position:
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
    walked = Walk(module, platform=platform, trips=trips or {})
    if module.entry is None:
        return walked
    walked.top = Call(module.entry)
    # An explicit stack, as loops may be nested deeper than Python's recursion limit.
    stack = [_Position(walked.top, 0, (), -1, 1, 1)]
    while stack:
        position = stack[-1]
        if position.at >= len(position.call.computation.instructions):
            stack.pop()
            continue
        instruction = position.call.computation.instructions[position.at]
        position.at += 1
        if len(walked.units) > _MANY:
            walked.notes.append(f"only the first {_MANY} kernels are counted")
            break
        _visit(walked, position, instruction, stack)
    return walked


def _visit(
    walked: Walk, position: _Position, instruction: Instruction, stack: list[_Position]
) -> None:
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith(_ENDS):
        return
    match opcode:
        case "while":
            _loop(walked, position, instruction, stack)
        case "conditional":
            names = instruction.called.get("branch_computations") or (
                *instruction.called.get("true_computation", ()),
                *instruction.called.get("false_computation", ()),
            )
            first, path = len(walked.branches), instruction.equation
            loop = position.loops[-1] if position.loops else -1
            runs = []
            for arm, name in enumerate(names):
                walked.branches.append(
                    Branch(instruction.name, arm, len(names), path, loop, position.branch)
                )
                runs.append(_run(walked, position, instruction, "branch", name, branch=first + arm))
            _push_runs(position, instruction, stack, runs)
        case "call" if _SMALL_CALL not in instruction.attributes:
            called = instruction.called.get("to_apply", ())
            runs = [_run(walked, position, instruction, "call", name) for name in called]
            _push_runs(position, instruction, stack, runs)
        case "custom-call" if instruction.attribute("custom_call_target") in ANNOTATIONS:
            pass
        case "fusion" if is_end_of_async(instruction, walked.module):
            pass
        case _:
            _launch(walked, position, instruction)


def _launch(walked: Walk, position: _Position, instruction: Instruction) -> None:
    """Add a kernel, or a transfer, which is none."""
    computation = position.call.computation
    unit = Unit(
        instruction,
        computation,
        position.loops,
        position.branch,
        position.launches,
        position.at_least,
    )
    if walked.platform != "cpu" and walked.module.has_host_memory:
        moved = moves(instruction, computation, walked.module, walked.platform)
        if moved:
            walked.moving.append(Moving(unit, moved, len(walked.units)))
            if not any(move.is_kernel for move in moved):
                return
    if instruction.opcode in _TRANSFERS and is_tiled(instruction.shape):
        walked.transfers += 1
        return
    position.call.units[instruction.name] = len(walked.units)
    walked.units.append(unit)


def is_end_of_async(instruction: Instruction, module: Module) -> bool:
    """Return whether a TPU's fusion only waits for the end of a collective beside other fusions."""
    if instruction.attribute("kind") != "kCustom" or not is_tiled(instruction.shape):
        return False
    computation = module.computation(instruction.calls)
    root = computation.root if computation is not None else None
    return root is not None and root.attribute("custom_call_target") == "AsyncCollectiveDone"


def _loop(
    walked: Walk, position: _Position, instruction: Instruction, stack: list[_Position]
) -> None:
    trip_count = _TRIPS.search(instruction.attributes)
    trips = int(trip_count[1]) if trip_count else _trips(walked, position, instruction)
    index = len(walked.loops)
    # XLA's `WhileThunk` on CPUs and GPUs runs the body for the trip count of the HLO and never runs
    # the condition (`xla/backends/{cpu,gpu}/runtime/while_thunk.cc`). Without a trip count, and on
    # TPUs, the condition runs once more than the body.
    counted = trip_count is not None and walked.platform != "tpu"
    walked.loops.append(
        Loop(
            instruction.name,
            trips,
            position.loops[-1] if position.loops else -1,
            instruction.equation,
            position.branch,
            arrays(instruction.shape),
            waits=not counted and walked.platform in ("cuda", "rocm"),
        )
    )
    position.call.loops[instruction.name] = index
    body = (1, 0) if trips is None else (trips, trips)
    condition = (0, 0) if counted else (1, 1) if trips is None else (trips + 1, trips + 1)
    called = instruction.called
    loops = (*position.loops, index)
    runs = [
        _run(walked, position, instruction, role, name, loops=loops, times=times)
        for role, times in (("body", body), ("condition", condition))
        for name in called.get(role, ())
    ]
    _push_runs(position, instruction, stack, runs)


def _trips(walked: Walk, position: _Position, loop: Instruction) -> int | None:
    """Return the iterations of a loop whose HLO does not have them, or `None`.

    libtpu never writes them; it may run two iterations of a scan in one.
    """
    called = loop.called
    condition = _computation(walked, next(iter(called.get("condition", ())), ""))
    body = _computation(walked, next(iter(called.get("body", ())), ""))
    counted = None
    if is_tiled(loop.shape) and condition is not None and body is not None:
        counted = count(loop, position.call.computation, condition, body)
    return walked.trips.get(loop.equation) if counted is None else counted


def _computation(walked: Walk, name: str) -> Computation | None:
    if name not in walked.computations:
        walked.computations[name] = walked.module.computation(name)
    return walked.computations[name]


def _run(
    walked: Walk,
    position: _Position,
    instruction: Instruction,
    role: str,
    name: str,
    *,
    loops: tuple[int, ...] | None = None,
    branch: int | None = None,
    times: tuple[int, int] = (1, 1),
) -> tuple[str, _Position] | None:
    """Return the start of a run of a computation with its role, or `None` if it does not exist.

    `times` is the maximum and minimum number of runs.
    """
    computation = _computation(walked, name)
    if computation is None:
        walked.notes.append(f"{instruction.name} calls {name}, which is not in the module")
        return None
    most, least = times
    return role, _Position(
        Call(computation),
        0,
        position.loops if loops is None else loops,
        position.branch if branch is None else branch,
        position.launches * most,
        position.at_least * least,
    )


def _push_runs(
    position: _Position,
    instruction: Instruction,
    stack: list[_Position],
    runs: list[tuple[str, _Position] | None],
) -> None:
    """Push the computations that an instruction runs on the stack, the first on top."""
    entered = [run for run in runs if run is not None]
    stack += [inner for _, inner in reversed(entered)]
    calls = position.call.calls.setdefault(instruction.name, [])
    calls += [(role, inner.call) for role, inner in entered]
