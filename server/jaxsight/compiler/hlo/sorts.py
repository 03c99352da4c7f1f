"""Count the kernels that XLA launches for a sort on a GPU, and the copies before it.

Where it is faster, XLA calls NVIDIA's CUB (`SortRewriter` in
`xla/backends/gpu/transforms/sort_rewriter.cc`), which sorts by digits of the keys (`radix_sort`).
Else it sorts in place, by bitonic stages: `EmitBitonicSortLLVMIR`
(`xla/service/gpu/thunk_emitter.cc`, before 2025 `ir_emitter_unnested.cc`) launches one kernel for
each stage whose partners are further apart than a tile, and one for each run of stages within a
tile.
An operand whose buffer the result cannot reuse is copied first (`SortFusion::Emit`,
`xla/backends/gpu/codegen/sort.cc`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxsight.compiler.hlo.fused import Fused
from jaxsight.hlo.shapes import arrays, sizes
from jaxsight.hlo.text import Computation, HloModule, Instruction, aliases
from jaxsight.targets.chips import gpus
from jaxsight.wire.kernel_graph import Value

SHARED_PER_BLOCK = {"cuda": gpus.SHARED_PER_BLOCK, "rocm": 64 * 1024}
"""Bytes of shared memory that a block has by default, by platform (AMD's HIP documentation,
"Hardware features")."""
UNROLLED = 4
"""`kUnrollFactor` of `EmitBitonicSortLLVMIR`, since XLA of 2024."""
CUB = ("__cub$DeviceRadixSort", "xla.gpu.ext.cub_sort")
"""Beginnings of the targets of XLA's calls of CUB."""
_TILE_THREADS, _TILE_ITEMS = 256, 19
"""The block of CUB's sort in one kernel, and its keys by thread if they and their values have up to
4 bytes (`SingleTilePolicy`)."""
_PORTION = (1 << 28) - 1
"""The most elements of one kernel of a pass (`PORTION_SIZE` of `invoke_onesweep`)."""
_ONESWEEP = 9
"""The first major compute capability on which CUB sorts narrow keys by Onesweep: `Policy900`."""


class Launches(NamedTuple):
    """Kernels and copies of one execution of a sort.

    `most` exceeds `least` if it is unknown whether an operand is copied, or which of its algorithms
    CUB uses.
    """

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class RadixSort:
    """How CUB sorts.

    As in `cub/device/dispatch/dispatch_radix_sort.cuh` and `tuning/tuning_radix_sort.cuh` of
    NVIDIA's cccl 3.1 and 3.2. Several rows are sorted by one kernel for each digit, in which one
    block sorts a row. A single row is sorted by Onesweep (A. Adinets, D. Merrill: "Onesweep: A
    Faster Least Significant Digit Radix Sort for GPUs", arXiv 2206.01784), by three kernels for
    each digit ("sweeps"), or in one kernel if it is short.
    """

    values: tuple[Value, ...]
    """The keys, and what is sorted with them."""
    capability: str = ""
    """The compute capability of the GPU, such as `9.0`; empty if unknown."""

    @property
    def length(self) -> int:
        """The keys of a row."""
        return sizes(self.values[0])[-1]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._elements // self.length

    @property
    def _elements(self) -> int:
        return math.prod(sizes(self.values[0]))

    @property
    def _bits(self) -> int:
        """The width of a key."""
        return 8 * self.values[0].bytes // self._elements

    @property
    def is_single_tile(self) -> bool:
        """Whether one kernel sorts the only row."""
        widest = max(value.bytes for value in self.values) // self._elements
        items = _TILE_ITEMS * 4 // max(4, widest)
        return self.rows == 1 and self.length <= _TILE_THREADS * items

    @property
    def _sweeps(self) -> bool:
        """Whether a single row is sorted by sweeps: narrow keys before Hopper."""
        major = int(self.capability.partition(".")[0] or _ONESWEEP)
        return self._bits < 32 and major < _ONESWEEP

    @property
    def passes(self) -> int:
        """How often it moves all keys and values: the number of digits."""
        if self.is_single_tile:
            return 1
        is_wide = self._bits > 8
        if self.rows > 1:
            return math.ceil(self._bits / (6 if is_wide else 5))
        if self._sweeps:
            return math.ceil(self._bits / (7 if is_wide else 5))
        return self._bits // 8

    @property
    def counts(self) -> int:
        """How often it reads the keys to count digits; Onesweep counts all digits at once."""
        if self.is_single_tile:
            return 0
        return self.passes if self.rows > 1 or self._sweeps else 1

    @property
    def launches(self) -> Launches:
        """The kernels, copies and clears of one execution."""
        if self.is_single_tile:
            return Launches(1, 1)
        if self.rows > 1:
            return Launches(self.passes + 1, self.passes + 1)  # a copy of the rows' offsets
        if self._sweeps:
            return Launches(3 * self.passes, 3 * self.passes)
        # Counting all digits, summing the counts, and each pass; the first and each pass clear.
        onesweep = 2 * (2 + self.passes * math.ceil(self.length / _PORTION))
        if self.capability or self._bits >= 32:
            return Launches(onesweep, onesweep)
        sweeps = replace(self, capability="8.0").launches
        return Launches(min(onesweep, sweeps.least), max(onesweep, sweeps.most))


def radix_sort(instruction: Instruction, capability: str = "") -> RadixSort | None:
    """Return how CUB sorts, or `None` if an instruction does not call it for a sort.

    Args:
        capability: the compute capability of the GPU, such as `9.0`; empty if unknown.
    """
    if not instruction.attribute("custom_call_target").startswith(CUB):
        return None
    values = arrays(instruction.shape)[:-1]  # The last one is scratch memory.
    if not values or not math.prod(sizes(values[0])):
        return None
    return RadixSort(values, capability)


def launches(
    module: HloModule, computation: Computation, fused: Fused, platform: str, capability: str
) -> Launches | None:
    """Count the launches of an instruction that is a sort, or a fusion of one.

    Args:
        computation: the computation of the instruction.
        platform: `cuda` or `rocm`.
        capability: the compute capability of a GPU, such as `9.0`; empty if unknown.

    Returns:
        `None` if it is no sort, or one by another library than CUB.
    """
    if platform == "cuda" and (radix := radix_sort(fused.instruction, capability)) is not None:
        return radix.launches
    if "sort" not in fused.opcodes or platform not in SHARED_PER_BLOCK:
        return None
    instruction, inside = fused.instruction, fused.body
    sort = inside.root if inside and instruction.opcode == "fusion" else instruction
    if sort is None or sort.opcode != "sort" or (lengths := sorted_lengths(sort)) is None:
        return None
    names = [name for name in sort.operands if name in computation.by_name]
    if inside is not None:  # What is read from memory, unlike an `iota` in the fusion.
        inputs = [each.number for each in inside.operands(sort) if each.opcode == "parameter"]
        names = [instruction.operands[number] for number in inputs]
    length, rows = lengths
    elements = max(1, length * rows)
    width = sum(-(-operand.bytes // elements) for operand in arrays(sort.shape))
    kernels = bitonic_kernels(length, width, SHARED_PER_BLOCK[platform])
    copied = sum(_is_kept(module, computation, name) for name in names)
    return Launches(kernels + copied, kernels + len(names))


def sorted_lengths(sort: Instruction) -> tuple[int, int] | None:
    """Return the elements along the sorted axis and the number of rows; `None` if unknown."""
    values = arrays(sort.shape)
    lengths = sizes(values[0]) if values else ()
    dimension = next(iter(sort.numbers("dimensions")), 0)
    if dimension >= len(lengths):
        return None
    length = lengths[dimension]
    return length, math.prod(lengths) // max(length, 1)


def bitonic_kernels(length: int, width: int, shared: int) -> int:
    """Return the kernels of a bitonic sort.

    Args:
        length: elements along the sorted axis.
        width: bytes of one element of all operands together.
        shared: bytes of shared memory of a block.
    """
    if length < 2:
        return 0
    tile = tile_length(length, width, shared)
    fits = tile.bit_length() - 1
    # One run within a tile comes before all separate stages, and one after those of each mask.
    runs = (length - 1).bit_length() - fits + 1 if fits else 0
    return separate_stages(length, tile) + runs


def tile_length(length: int, width: int, shared: int) -> int:
    """Return the elements that a block sorts in shared memory, as in `bitonic_kernels`."""
    stages = (length - 1).bit_length()
    fitting = min(gpus.THREADS_PER_BLOCK * UNROLLED, shared // max(width, 1), 1 << stages)
    return 1 << (max(fitting, 1).bit_length() - 1)


def separate_stages(length: int, tile: int) -> int:
    """Return the stages of a bitonic sort that are a kernel each: partners are in two tiles."""
    fits = tile.bit_length() - 1
    return sum(1 + stage - fits for stage in range(fits, (length - 1).bit_length()))


def _is_kept(module: HloModule, computation: Computation, name: str) -> bool:
    """Return whether an operand's buffer is certain not to be reused for the result.

    That applies to constants, and to arguments that were not donated.
    """
    value = computation.by_name.get(name)
    if value is None or computation is not module.entry:
        return False
    operand = computation.source(value, ("bitcast",))
    donated = {alias.parameter for alias in aliases(module.header)}
    is_argument = operand.opcode == "parameter" and operand.number not in donated
    return is_argument or operand.opcode == "constant"
