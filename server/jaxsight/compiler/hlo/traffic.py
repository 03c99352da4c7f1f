"""Estimate which share of each value a fusion reads, and how many bytes it writes.

A kernel that slices or gathers reads the selected rows, not the array; one that updates a slice in
place writes the slice.
XLA's own cost analysis counts like this too (`FusionParameterReadBytes`,
`HandleDynamicUpdateSlice`, `HandleGather` and `HandleScatter` in xla/service/hlo_cost_analysis.cc).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from jaxsight.compiler.hlo.flops import Lookup, operand
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.hlo.shapes import (
    arrays,
    bits,
    dtype,
    elements,
    layout,
    sizes,
    total_bytes,
)
from jaxsight.hlo.text import Computation, Instruction

SECTOR = 32
"""Minimum number of bytes that a GPU reads or writes at once (CUDA C++ Best Practices Guide,
"Coalesced Access to Global Memory").
"""

_CACHED = 128 * 1024
"""Bytes of a table that stays in the L1 cache of each multiprocessor, which has at least as many
since Volta (CUDA C++ Programming Guide, "Compute Capabilities").
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

_UPDATES = frozenset({"dynamic-update-slice", "scatter"})
_PARTIAL = _UPDATES | {"slice", "dynamic-slice", "gather", "broadcast"}
"""Operations that may read another share of an operand than is required of their result."""


@dataclass(slots=True, eq=False)
class Needs:
    """The shares, from 0 to 1, of its values that a computation requires."""

    by_name: dict[str, float] = field(default_factory=dict)
    inner: list[tuple[Computation, Needs]] = field(default_factory=list)
    """Computations of the fusions within, with their needs."""
    written: list[int] = field(default_factory=list)
    """Bytes of each array of the result that are written to memory."""


@dataclass(slots=True)
class _Wanted:
    """The shares of values that later instructions require: slices add up, other uses overlap."""

    shared: dict[str, float]
    sliced: dict[str, float] = field(default_factory=dict)

    def share(self, name: str) -> float:
        """Return the required share of a value."""
        share = self.shared.get(name, 0.0)
        return min(1.0, share + self.sliced.get(name, 0.0)) if self.sliced else share

    def add(self, names: Iterable[str], share: float) -> None:
        """Require at least this share of values."""
        shared = self.shared
        for name in names:
            if share > shared.get(name, 0.0):
                shared[name] = share

    def add_slice(self, name: str, share: float) -> None:
        """Require this share besides all other slices."""
        self.sliced[name] = self.sliced.get(name, 0.0) + share


def needs(
    computation: Computation, fused: Fused, share: float = 1.0, *, last: bool = True
) -> Needs:
    """Return the shares of values that a computation requires, from its result backwards.

    Args:
        fused: the launch that contains it.
        share: the required share of its result.
        last: whether its result goes to memory, so that it may update an array in place.
    """
    needed = Needs()
    root = computation.root
    if root is None:
        return needed
    wanted = _Wanted({root.name: share})
    results = [computation.source(result, _SAME) for result in computation.results()]
    in_place = _in_place(computation, results) if last else set()
    for instruction in reversed(computation.instructions):
        name, opcode = instruction.name, instruction.opcode
        share = wanted.share(name)
        if share == 0.0:
            continue
        needed.by_name[name] = share
        if opcode == "fusion" and (inside := fused.called(instruction)) is not None:
            nested = needs(inside, fused, share, last=last and instruction is root)
            needed.inner.append((inside, nested))
            for operand_name, parameter in zip(
                instruction.operands, inside.parameters(), strict=False
            ):
                wanted.add([operand_name], nested.by_name.get(parameter.name, 0.0))
            if instruction is root:
                needed.written = nested.written
        elif opcode in _PARTIAL:
            _spread(computation, instruction, share, wanted, name in in_place)
        else:
            wanted.add(instruction.operands, 1.0 if opcode in _WHOLE else share)
    if not needed.written:
        needed.written = [
            updated_bytes(result, computation.by_name.get)
            if result.name in in_place
            else total_bytes(result.shape)
            for result in results
        ]
    return needed


def _spread(
    computation: Computation,
    instruction: Instruction,
    share: float,
    wanted: _Wanted,
    in_place: bool,
) -> None:
    """Add the shares of the operands of one of `_PARTIAL`, for `share` of its result."""
    lookup = computation.by_name.get
    opcode, read = instruction.opcode, operand(instruction, lookup, 0)
    for index, name in enumerate(dict.fromkeys(instruction.operands)):
        if index == 0 and opcode in ("slice", "dynamic-slice", "gather"):
            part = sliced_bytes(instruction, lookup) / max(_bytes(read), 1)
            wanted.add_slice(name, min(1.0, share * part))
        elif index > 0 and opcode in _UPDATES:
            wanted.add([name], 1.0)
        elif opcode in _UPDATES and in_place:
            # A scatter reads the elements that it updates; an update of a slice does not.
            touched = updated_bytes(instruction, lookup) if opcode == "scatter" else 0
            wanted.add_slice(name, min(1.0, touched / max(_bytes(read), 1)))
        elif opcode == "broadcast":
            repeats = elements(instruction.shape) / max(elements(read), 1)
            wanted.add([name], min(1.0, share * repeats))
        else:
            wanted.add([name], share)


def sliced_bytes(instruction: Instruction, lookup: Lookup) -> int:
    """Return the bytes that a slice, dynamic slice or gather reads of its first operand."""
    source = operand(instruction, lookup, 0)
    if instruction.opcode != "gather":
        return _bytes(instruction.shape)
    window = instruction.numbers("slice_sizes")
    count = elements(instruction.shape) // max(math.prod(window), 1)
    return min(count * _touched(window, source), _bytes(source))


def repeated_bytes(gather: Instruction, lookup: Lookup) -> int:
    """Return the bytes that a gather reads more often than once, if it has more rows than a table.

    Its rows are in whole sectors.
    """
    source = operand(gather, lookup, 0)
    window = gather.numbers("slice_sizes")
    if _bytes(source) <= _CACHED:
        return 0
    count = elements(gather.shape) // max(math.prod(window), 1)
    return max(0, count * _touched(window, source) - _bytes(source))


def atomic_sectors(scatter: Instruction, lookup: Lookup) -> tuple[int, int]:
    """Return the sectors that all updates of a scatter touch, and those that one of them does."""
    source = operand(scatter, lookup, 0)
    updates = operand(scatter, lookup, len(scatter.operands) - 1)
    window = _window_sizes(scatter, source, updates)
    each = max(1, _touched(window, source) // SECTOR)
    return elements(updates) // max(math.prod(window), 1) * each, each


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
    inserted = {
        *instruction.numbers("inserted_window_dims"), *instruction.numbers("input_batching_dims")
    }  # fmt: skip
    values, target = arrays(updates), arrays(source)
    if not values or not target:
        return ()
    lengths = dict(enumerate(sizes(values[0])))
    axes = instruction.numbers("update_window_dims")
    window = iter([lengths[axis] for axis in axes if axis in lengths])
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


def _in_place(computation: Computation, results: list[Instruction]) -> set[str]:
    """Return the results that update a parameter in place, by name.

    If the parameter is still needed, XLA copies it first, in a kernel of its own (`CopyInsertion`,
    `HloDataflowAnalysis::GetInPlaceInputOutputPairs`).
    """
    return {
        each.name
        for each in results
        if each.opcode in _UPDATES
        and (array := computation.by_name.get(next(iter(each.operands), ""))) is not None
        and computation.source(array, _SAME).opcode == "parameter"
    }
