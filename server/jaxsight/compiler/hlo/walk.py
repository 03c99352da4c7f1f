"""Find the instructions that a run launches, from the entry through while, conditional and call.

The order is that of the text; the units of an inner computation come at the place of its call.
A computation that is called twice has its units twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.compiler.hlo.host_moves import Move, moves
from jaxsight.hlo.shapes import arrays, is_tiled
from jaxsight.hlo.text import Computation, HloModule, Instruction
from jaxsight.text.names import name_set
from jaxsight.wire.kernel_graph import Branch, Loop

FREE = name_set(
    """
    parameter constant tuple get-tuple-element bitcast after-all opt-barrier partition-id
    replica-id add-dependency domain
    """
)
"""Instructions that launch nothing."""

ANNOTATIONS = name_set(
    """
    ConcatBitcast AssumeGatherIndicesInBound GatherScatterIndicesBitpacked AllocateBuffer
    CreateBuffer Sharding SPMDFullToShardShape SPMDShardToFullShape LayoutConstraint MoveToHost
    MoveToDevice PinToDevice Unpin annotate_device_placement InspectSharding NoOp
    xla.sdy.FuncResultSharding
    """
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
class ComputationRun:
    """A run of a computation."""

    computation: Computation
    units: dict[str, int] = field(default_factory=dict)
    """Units of its instructions, by name."""
    calls: dict[str, list[ComputationRun]] = field(default_factory=dict)
    """Inner runs by the name of the calling instruction; those of bodies are before conditions."""
    loops: dict[str, int] = field(default_factory=dict)
    """Loops of its while instructions, by name."""


@dataclass(slots=True, eq=False)
class Walk:
    """The result: units, loops and branches of a module."""

    module: HloModule
    platform: str = "cpu"
    trips: Mapping[str, int] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    transfers: int = 0
    moving: list[Moving] = field(default_factory=list)
    top: ComputationRun | None = None
    computations: dict[str, Computation | None] = field(default_factory=dict)
    """The computations that run, besides the entry."""
    notes: list[str] = field(default_factory=list)

    def runs(self, unit: Unit) -> int:
        """Return the iterations of the loops around an instruction; 0 if it is never launched."""
        trips = [self.loops[index].trips or 1 for index in unit.loops]
        return math.prod(trips) if unit.launches else 0


@dataclass(slots=True)
class _Position:
    call: ComputationRun
    rest: Iterator[Instruction]
    loops: tuple[int, ...] = ()
    branch: int = -1
    launches: int = 1
    at_least: int = 1


def walk(
    module: HloModule, *, platform: str = "cpu", trips: Mapping[str, int] | None = None
) -> Walk:
    """Follow the entry computation.

    Args:
        platform: the target's platform, `cpu`, `cuda`, `rocm` or `tpu`.
        trips: trip counts of loops by their equations, for loops whose trip count is not in the
            HLO.
    """
    walked = Walk(module, platform=platform, trips=trips or {})
    if module.entry is None:
        return walked
    walked.top = ComputationRun(module.entry)
    # An explicit stack, as loops may be nested deeper than Python's recursion limit.
    stack = [_Position(walked.top, iter(module.entry.instructions))]
    while stack:
        position = stack[-1]
        instruction = next(position.rest, None)
        if instruction is None:
            stack.pop()
        elif len(walked.units) > _MANY:
            walked.notes.append(f"only the first {_MANY} kernels are counted")
            break
        elif inner := list(filter(None, _visit(walked, position, instruction))):
            position.call.calls[instruction.name] = [run.call for run in inner]
            stack += reversed(inner)
    return walked


def _visit(
    walked: Walk, position: _Position, instruction: Instruction
) -> Sequence[_Position | None]:
    """Add what an instruction launches, and return the computations that it runs."""
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith(_ENDS):
        return ()
    match opcode:
        case "while":
            return _loop(walked, position, instruction)
        case "conditional":
            names = instruction.called.get("branch_computations") or (
                *instruction.called.get("true_computation", ()),
                *instruction.called.get("false_computation", ()),
            )
            first, path = len(walked.branches), instruction.equation
            loop = position.loops[-1] if position.loops else -1
            walked.branches += [
                Branch(instruction.name, arm, len(names), path, loop, position.branch)
                for arm in range(len(names))
            ]
            return [
                _run(walked, position, instruction, name, branch=branch)
                for branch, name in enumerate(names, first)
            ]
        case "call" if _SMALL_CALL not in instruction.attributes:
            called = instruction.called.get("to_apply", ())
            return [_run(walked, position, instruction, name) for name in called]
        case "custom-call" if instruction.attribute("custom_call_target") in ANNOTATIONS:
            pass
        case "fusion" if is_end_of_async(instruction, walked.module):
            pass
        case _:
            _launch(walked, position, instruction)
    return ()


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


def is_end_of_async(instruction: Instruction, module: HloModule) -> bool:
    """Return whether a TPU's fusion only waits for the end of a collective beside other fusions."""
    if instruction.attribute("kind") != "kCustom" or not is_tiled(instruction.shape):
        return False
    computation = module.computation(instruction.calls)
    root = computation.root if computation is not None else None
    return root is not None and root.attribute("custom_call_target") == "AsyncCollectiveDone"


def _loop(
    walked: Walk, position: _Position, instruction: Instruction
) -> Sequence[_Position | None]:
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
    loops = (*position.loops, index)
    return [
        _run(walked, position, instruction, name, loops=loops, times=times)
        for role, times in (("body", body), ("condition", condition))
        for name in instruction.called.get(role, ())
    ]


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
    name: str,
    *,
    loops: tuple[int, ...] | None = None,
    branch: int | None = None,
    times: tuple[int, int] = (1, 1),
) -> _Position | None:
    """Return the start of a run of a computation, or `None` if it does not exist.

    `times` is the maximum and minimum number of runs.
    """
    computation = _computation(walked, name)
    if computation is None:
        walked.notes.append(f"{instruction.name} calls {name}, which is not in the module")
        return None
    most, least = times
    return _Position(
        ComputationRun(computation),
        iter(computation.instructions),
        position.loops if loops is None else loops,
        position.branch if branch is None else branch,
        position.launches * most,
        position.at_least * least,
    )


# Count the iterations of loops from their instructions, as libtpu does not write them.
#
# A loop is counted if a number begins at a constant, each iteration adds a constant to it, and the
# loop ends when it reaches a constant.
# Such are the loops of `scan` and `fori_loop`, and those in which a partitioned matmul takes turns
# with communication (`windowed_dot_general` in XLA).


_SAME = frozenset({"copy", "bitcast"})


def count(
    loop: Instruction, around: Computation, condition: Computation, body: Computation
) -> int | None:
    """Return the iterations of a loop, or `None` if they are not known.

    Args:
        loop: the while instruction.
        around: the computation that it is in.
        condition: its condition.
        body: its body.
    """
    test = condition.root
    if test is None or test.opcode != "compare" or test.attribute("direction") != "LT":
        return None
    counter, limit = (_source(condition, name) for name in test.operands)
    index = _element(condition, counter)
    begin = None if index is None else _initial(loop, around, index)
    end = _number(limit)
    if end is None and (fixed := _element(condition, limit)) is not None:
        is_kept = _element(body, _returned(body, fixed)) == fixed
        end = _initial(loop, around, fixed) if is_kept else None
    added = None if index is None else _returned(body, index)
    if begin is None or end is None or added is None or added.opcode != "add":
        return None
    terms = [_source(body, name) for name in added.operands]
    steps = [number for number in map(_number, terms) if number is not None]
    if len(steps) != 1 or steps[0] <= 0 or index not in [_element(body, term) for term in terms]:
        return None
    return max(0, -(-(end - begin) // steps[0]))


def _initial(loop: Instruction, around: Computation, index: int) -> int | None:
    """Return the number that an element of the carry begins with, if it is a constant."""
    carry = around.by_name.get(loop.operands[0]) if loop.operands else None
    return _number(_item(around, carry, index))


def _returned(body: Computation, index: int) -> Instruction | None:
    return _item(body, body.root, index)


def _item(computation: Computation, made: Instruction | None, index: int) -> Instruction | None:
    """Return what computes an element of a tuple, if that is known."""
    if made is None or made.opcode != "tuple" or index >= len(made.operands):
        return None
    return _source(computation, made.operands[index])


def _source(computation: Computation, name: str) -> Instruction | None:
    """Return the instruction that computes a value, before copies of it."""
    instruction = computation.by_name.get(name)
    return None if instruction is None else computation.source(instruction, _SAME)


def _element(computation: Computation, instruction: Instruction | None) -> int | None:
    """Return the index of an element of the carry."""
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    carry = computation.by_name.get(instruction.operands[0])
    index = instruction.attribute("index")
    return int(index) if carry is not None and carry.opcode == "parameter" and index else None


def _number(instruction: Instruction | None) -> int | None:
    if instruction is None or instruction.opcode != "constant":
        return None
    try:
        return int(instruction.literal)
    except ValueError:
        return None
