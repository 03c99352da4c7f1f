"""Count the kernels that XLA launches for a sort on a GPU, and the copies before it.

XLA sorts in place, by bitonic stages: `EmitBitonicSortLLVMIR` (`xla/service/gpu/thunk_emitter.cc`,
before 2025 `ir_emitter_unnested.cc`) launches one kernel for each stage whose partners are further
apart than a tile, and one for each run of stages within a tile.
An operand whose buffer the result cannot reuse is copied first (`SortFusion::Emit`,
`xla/backends/gpu/codegen/sort.cc`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.shapes import arrays, sizes
from jaxsight.compiler.hlo.text import Computation, Instruction, Module

THREADS_PER_BLOCK = 1024
"""The same on every GPU that XLA compiles for: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"; AMD's HIP documentation, "Hardware features"."""
SHARED_PER_BLOCK = {"cuda": 48 * 1024, "rocm": 64 * 1024}
"""Default bytes of shared memory of a block, by platform."""
_UNROLLED = 4
"""`kUnrollFactor` of `EmitBitonicSortLLVMIR`, since XLA of 2024."""
_DIMENSION = re.compile(r"dimensions=\{(\d+)\}")
_ALIAS = re.compile(r"\{[^{}]*\}: \((\d+), \{")


@dataclass(frozen=True, slots=True)
class Launches:
    """Kernels and copies of one execution of a sort.

    `most` exceeds `least` if it is unknown whether an operand is copied.
    """

    least: int
    most: int


def launches(
    module: Module, computation: Computation, fused: Fused, platform: str
) -> Launches | None:
    """Count the launches of an instruction that is a sort, or a fusion of one.

    Args:
        computation: the computation of the instruction.
        platform: `cuda` or `rocm`.

    Returns:
        `None` if it is not a sort by XLA's own kernels.
    """
    if "sort" not in fused.opcodes or platform not in SHARED_PER_BLOCK:
        return None
    instruction = fused.instruction
    sort, inside = _sort(computation, fused)
    if sort is None:
        return None
    operands = arrays(sort.shape)
    axis = _DIMENSION.search(sort.attributes)
    if not operands or axis is None:
        return None
    length = sizes(operands[0])[int(axis[1])]
    elements = max(1, _count(sizes(operands[0])))
    width = sum(-(-operand.bytes // elements) for operand in operands)
    kernels = bitonic_kernels(length, width, SHARED_PER_BLOCK[platform])
    inputs = [name for name in sort.operands if _is_given(inside, computation, name)]
    names = inputs
    if inside is not computation:
        names = [instruction.operands[int(inside.by_name[name].literal)] for name in inputs]
    copied = sum(_is_kept(module, computation, name) for name in names)
    return Launches(kernels + copied, kernels + len(names))


def bitonic_kernels(length: int, width: int, shared: int) -> int:
    """Return the kernels of a bitonic sort.

    Args:
        length: elements along the sorted axis.
        width: bytes of one element of all operands together.
        shared: bytes of shared memory of a block.
    """
    if length < 2:
        return 0
    stages = (length - 1).bit_length()
    fitting = min(THREADS_PER_BLOCK * _UNROLLED, shared // max(width, 1), 1 << stages)
    tile = 1 << (max(fitting, 1).bit_length() - 1)
    kernels = 0
    collected = False
    for stage in range(stages):
        for mask in range(stage, -1, -1):
            apart = (1 << (stage + 1)) - 1 if mask == stage else 1 << mask
            if apart >= tile:
                kernels += 1 + collected
                collected = False
            else:
                collected = True
    return kernels + collected


def _sort(computation: Computation, fused: Fused) -> tuple[Instruction | None, Computation]:
    """Return the sort itself, and its computation."""
    if fused.instruction.opcode == "sort":
        return fused.instruction, computation
    if fused.instruction.opcode == "fusion" and (inside := fused.body) is not None:
        root = inside.root
        if root is not None and root.opcode == "sort":
            return root, inside
    return None, computation


def _is_given(inside: Computation, outside: Computation, name: str) -> bool:
    """Return whether an operand is read from memory, unlike an `iota` in a fusion."""
    operand = inside.by_name.get(name)
    return operand is not None and (inside is outside or operand.opcode == "parameter")


def _is_kept(module: Module, computation: Computation, name: str) -> bool:
    """Return whether an operand's buffer is certain not to be reused for the result.

    That applies to constants, and to arguments that were not donated.
    """
    operand = computation.by_name.get(name)
    depth = 0
    while operand is not None and operand.opcode == "bitcast" and depth < len(computation.by_name):
        operand, depth = computation.by_name.get(operand.operands[0]), depth + 1
    if operand is None or computation is not module.entry:
        return False
    if operand.opcode == "constant":
        return True
    if operand.opcode != "parameter":
        return False
    donated = {int(match[1]) for match in _ALIAS.finditer(module.header)}
    return int(operand.literal) not in donated


def _count(lengths: tuple[int, ...]) -> int:
    count = 1
    for length in lengths:
        count *= length
    return count
