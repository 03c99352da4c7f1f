"""Estimate which share of each value a fusion reads, and how many bytes it writes.

A kernel that slices or gathers reads the selected rows, not the array; one that updates a slice in
place writes the slice.
XLA's own cost analysis counts like this too (`FusionParameterReadBytes`,
`HandleDynamicUpdateSlice`, `HandleGather` and `HandleScatter` in xla/service/hlo_cost_analysis.cc).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.compiler.hlo.flops import Lookup, operand
from jaxsight.compiler.hlo.shapes import arrays, bits, dims, dtype, elements, layout, sizes
from jaxsight.compiler.hlo.text import Computation, Instruction, Module

SECTOR = 32
"""Minimum number of bytes that a GPU reads or writes at once (CUDA C++ Best Practices Guide,
"Coalesced Access to Global Memory").
"""

_SAME = frozenset({"bitcast", "reshape", "bitcast-convert"})
_WHOLE = frozenset(
    {
        "dot", "ragged-dot", "scaled-dot", "convolution", "fft", "sort", "custom-call", "while",
        "call", "conditional", "reduce-window", "select-and-scatter", "cholesky",
        "triangular-solve", "all-reduce",
    }
)  # fmt: skip
"""Operations that read whole operands for any part of their result."""

_SLICES = re.compile(r"slice_sizes=\{([^}]*)\}")
_INSERTED = re.compile(r"(?:inserted_window_dims|input_batching_dims)=\{([^}]*)\}")
_UPDATED = re.compile(r"update_window_dims=\{([^}]*)\}")


@dataclass(slots=True)
class _Need:
    """The required share of a value: slices add up, other uses overlap."""

    shared: float = 0.0
    sliced: float = 0.0

    @property
    def share(self) -> float:
        return min(1.0, self.shared + self.sliced)


@dataclass(slots=True, eq=False)
class Needs:
    """The shares, from 0 to 1, of its values that a computation requires."""

    by_name: dict[str, float] = field(default_factory=dict)
    inner: list[tuple[Computation, Needs]] = field(default_factory=list)
    """Computations of the fusions within, with their needs."""
    written: list[int] = field(default_factory=list)
    """Bytes of each array of the result that are written to memory."""


def needs(
    computation: Computation, module: Module, share: float = 1.0, *, last: bool = True
) -> Needs:
    """Return the shares of values that a computation requires, from its result backwards.

    Args:
        share: the required share of its result.
        last: whether its result goes to memory, so that it may update an array in place.
    """
    needed = Needs()
    root = computation.root
    if root is None:
        return needed
    wanted: dict[str, _Need] = {root.name: _Need(share)}
    in_place = _in_place(computation) if last else set()
    for instruction in reversed(computation.instructions):
        need = wanted.get(instruction.name)
        if need is None:
            continue
        needed.by_name[instruction.name] = need.share
        if instruction.opcode == "fusion" and (inside := _fused(instruction, module)) is not None:
            nested = needs(inside, module, need.share, last=last and instruction is root)
            needed.inner.append((inside, nested))
            for name, parameter in zip(instruction.operands, inside.parameters(), strict=False):
                _add(wanted, name, nested.by_name.get(parameter.name, 0.0), sliced=False)
            if instruction is root:
                needed.written = nested.written
        else:
            _spread(computation, instruction, need.share, wanted, instruction.name in in_place)
    if not needed.written:
        needed.written = _written(computation, in_place)
    return needed


def _fused(instruction: Instruction, module: Module) -> Computation | None:
    names = instruction.called.get("calls", ())
    return module.computations.get(names[0]) if names else None


def _add(wanted: dict[str, _Need], name: str, share: float, *, sliced: bool) -> None:
    need = wanted.setdefault(name, _Need())
    if sliced:
        need.sliced += share
    else:
        need.shared = max(need.shared, share)


def _spread(
    computation: Computation,
    instruction: Instruction,
    share: float,
    wanted: dict[str, _Need],
    in_place: bool,
) -> None:
    """Add the shares of an instruction's operands that are required for `share` of its result."""
    lookup = computation.by_name.get
    opcode = instruction.opcode
    for index, name in enumerate(dict.fromkeys(instruction.operands)):
        if share == 0.0:
            _add(wanted, name, 0.0, sliced=False)
        elif index == 0 and opcode in ("slice", "dynamic-slice", "gather"):
            part = sliced_bytes(instruction, lookup) / max(
                _bytes(operand(instruction, lookup, 0)), 1
            )
            _add(wanted, name, min(1.0, share * part), sliced=True)
        elif index == 0 and opcode in ("dynamic-update-slice", "scatter") and in_place:
            # A scatter reads the elements that it updates; an update of a slice does not.
            touched = updated_bytes(instruction, lookup) if opcode == "scatter" else 0
            part = touched / max(_bytes(operand(instruction, lookup, 0)), 1)
            _add(wanted, name, min(1.0, part), sliced=True)
        elif opcode in _WHOLE or (index > 0 and opcode in ("scatter", "dynamic-update-slice")):
            _add(wanted, name, 1.0, sliced=False)
        elif opcode == "broadcast":
            repeats = elements(instruction.shape) / max(
                elements(operand(instruction, lookup, 0)), 1
            )
            _add(wanted, name, min(1.0, share * repeats), sliced=False)
        else:
            _add(wanted, name, share, sliced=False)


def sliced_bytes(instruction: Instruction, lookup: Lookup) -> int:
    """Return the bytes that a slice, dynamic slice or gather reads of its first operand."""
    source = operand(instruction, lookup, 0)
    if instruction.opcode != "gather":
        return _bytes(instruction.shape)
    slices = _SLICES.search(instruction.attributes)
    window = dims(slices[1]) if slices else ()
    count = elements(instruction.shape) // max(math.prod(window), 1)
    return min(count * _touched(window, source), _bytes(source))


def updated_bytes(instruction: Instruction, lookup: Lookup) -> int:
    """Return the bytes that a dynamic update of a slice or a scatter writes in place."""
    source = operand(instruction, lookup, 0)
    if instruction.opcode != "scatter":
        return _bytes(operand(instruction, lookup, 1))
    updates = operand(instruction, lookup, len(instruction.operands) - 1)
    window = _window_sizes(instruction, source, updates)
    count = elements(updates) // max(math.prod(window), 1)
    return min(count * _touched(window, source), _bytes(source))


def _window_sizes(instruction: Instruction, source: str, updates: str) -> tuple[int, ...]:
    """Return the sizes of the window that one index of a scatter updates, per operand dimension."""
    inserted = {axis for group in _INSERTED.findall(instruction.attributes) for axis in dims(group)}
    updated = _UPDATED.search(instruction.attributes)
    values, target = arrays(updates), arrays(source)
    if not values or not target:
        return ()
    lengths = sizes(values[0])
    axes = dims(updated[1]) if updated else ()
    window = iter([lengths[axis] for axis in axes if axis < len(lengths)])
    return tuple(
        1 if axis in inserted else next(window, 1) for axis in range(len(sizes(target[0])))
    )


def _touched(window: tuple[int, ...], source: str) -> int:
    """Return the bytes that a block of an array occupies, in whole sectors per contiguous run."""
    values = arrays(source)
    if not values or not window:
        return 0
    lengths = sizes(values[0])
    order = layout(source) or tuple(reversed(range(len(lengths))))
    run = 1
    for axis in order:
        if axis >= len(window):
            break
        run *= window[axis]
        if window[axis] != lengths[axis]:
            break
    width = bits(dtype(source)) / 8
    runs = math.prod(window) // max(run, 1)
    return runs * math.ceil(run * width / SECTOR) * SECTOR


def _bytes(shape: str) -> int:
    values = arrays(shape)
    return values[0].bytes if values else 0


def _results(computation: Computation) -> list[Instruction]:
    """Return the instructions that compute the results, skipping bitcasts."""
    return [_producer(computation, instruction) for instruction in computation.results()]


def _producer(computation: Computation, instruction: Instruction) -> Instruction:
    while instruction.opcode in _SAME and instruction.operands:
        operand = computation.by_name.get(instruction.operands[0])
        if operand is None:
            break
        instruction = operand
    return instruction


def _in_place(computation: Computation) -> set[str]:
    """Return the results that update a parameter in place, by name.

    If the parameter is still needed, XLA copies it first, in a kernel of its own (`CopyInsertion`,
    `HloDataflowAnalysis::GetInPlaceInputOutputPairs`).
    """
    updates: set[str] = set()
    for instruction in _results(computation):
        if (
            instruction.opcode not in ("dynamic-update-slice", "scatter")
            or not instruction.operands
        ):
            continue
        source = computation.by_name.get(instruction.operands[0])
        if source is not None and _producer(computation, source).opcode == "parameter":
            updates.add(instruction.name)
    return updates


def _written(computation: Computation, in_place: set[str]) -> list[int]:
    lookup = computation.by_name.get
    return [
        updated_bytes(instruction, lookup)
        if instruction.name in in_place
        else _all_bytes(instruction.shape)
        for instruction in _results(computation)
    ]


def _all_bytes(shape: str) -> int:
    return sum(value.bytes for value in arrays(shape))


def shares(computation: Computation, required: Needs) -> Mapping[int, float]:
    """Return the required shares of the parameters, by number."""
    return {
        number: required.by_name.get(parameter.name, 0.0)
        for number, parameter in enumerate(computation.parameters())
    }
