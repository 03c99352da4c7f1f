"""Estimate the arithmetic and the device memory traffic of one execution of a kernel."""

from __future__ import annotations

import math
import re

from jaxsight.compiler.hlo import traffic
from jaxsight.compiler.hlo.distributed.collectives import COLLECTIVES, STARTS
from jaxsight.compiler.hlo.flops import (
    UNCOUNTED,
    is_convolution_call,
    is_matmul_call,
    operations,
)
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.memory.spaces import is_on_chip
from jaxsight.compiler.hlo.shapes import (
    array_types,
    arrays,
    dims,
    elements,
    is_tiled,
    sizes,
)
from jaxsight.compiler.hlo.sorts import (
    CUB,
    SHARED_PER_BLOCK,
    RadixSort,
    bitonic_kernels,
    radix_sort,
)
from jaxsight.compiler.hlo.text import Computation, Instruction
from jaxsight.compiler.hlo.walk import ANNOTATIONS
from jaxsight.wire.kernel_graph import Operations, Work

_MOVES = ANNOTATIONS | {"X64SplitLow", "X64SplitHigh", "X64Combine"}
"""Custom calls that only move data, or are annotations for the compiler."""

_UNKNOWN = frozenset(
    {
        "cholesky", "triangular-solve", "infeed", "outfeed", "rng", "call", "while",
        "conditional", "topk", *COLLECTIVES, *STARTS,
    }
)  # fmt: skip
"""Operations whose time cannot be derived from their shapes."""

_SEVERAL_PASSES = frozenset({"fft", "sort", "custom-call"})
"""Operations that may read and write their values more than once."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_LENGTHS = re.compile(r"fft_length=\{([^}]*)\}")
_DIMENSION = re.compile(r"\bdimensions=\{(\d+)")

_ONE_ROW = 0.58
_ROWS = 0.49
_PER_CYCLE = 0.44
"""Shares of the bandwidth that CUB's sorts reach, and the elements of a row that a block moves in a
cycle. Measured on an H100 with CUDA 13: 2^22 and 2^24 keys of 32 bits with values of 32 and 64
bits, 512 rows of 50,257, and 64 rows of 65,536, fewer than the GPU has multiprocessors. The paper
on Onesweep has 29.4e9 keys of 32 bits a second on an A100, which is a share of 0.68.
"""

_FFT_AT_ONCE = 8192
"""The longest FFT that fits into shared memory and so needs one pass over memory (D. Tolmachev,
"VkFFT", IEEE Access 11, 2023).
"""


class Works:
    """Estimates the work of kernels; reads each computation's users once."""

    def __init__(self, capability: str = "") -> None:
        self._capability = capability
        self._readers: dict[str, dict[str, list[Instruction]]] = {}

    def of(self, fused: Fused, computation: Computation) -> Work | None:
        """Return the work of one execution of a kernel, or `None` without a model of it.

        Args:
            computation: the computation of its instruction.
        """
        instruction = fused.instruction
        on_tpu = is_tiled(instruction.shape)
        if not _is_modelled(fused, on_tpu):
            return None
        estimated = _CYCLES.search(instruction.attributes)
        cycles = int(estimated[1]) if estimated else 0
        body = fused.body
        if (radix := radix_sort(instruction, self._capability)) is not None:
            return _of_radix_sort(radix)
        if body is None:
            return self._single(instruction, computation, cycles)
        needs = traffic.needs(body, fused)
        shares = traffic.shares(body, needs)
        passes = 1
        if not _SEVERAL_PASSES.isdisjoint(fused.opcodes):
            passes = max(_passes(inner) for inner in fused.inside)
        read = sum(
            math.ceil(self._arriving(computation, instruction, name) * shares.get(number, 1.0))
            for number, name in enumerate(instruction.operands)
        )
        written = sum(self._leaving(computation, instruction, needs.written))
        matrix_units = on_tpu or instruction.attribute("kind") not in ("kLoop", "kInput")
        counted = _operations(body, needs, matrix_units)
        # Each pass except the first reads the output of the previous pass.
        return Work(counted, read + (passes - 1) * written, passes * written, cycles)

    def _single(self, instruction: Instruction, computation: Computation, cycles: int) -> Work:
        """Return the work of an operation that is a kernel by itself."""
        lookup = computation.by_name.get
        opcode = instruction.opcode
        names = list(dict.fromkeys(instruction.operands))
        read = {name: self._arriving(computation, instruction, name) for name in names}
        results = [value.bytes for value in arrays(instruction.shape)]
        if is_matmul_call(instruction) or is_convolution_call(instruction):
            results = results[:1]  # The others are workspace.
        if names and opcode in ("slice", "dynamic-slice", "gather") and read[names[0]]:
            read[names[0]] = traffic.sliced_bytes(instruction, lookup)
        if names and opcode in ("dynamic-update-slice", "scatter"):
            updated = traffic.updated_bytes(instruction, lookup)
            read[names[0]] = min(read[names[0]], updated) if opcode == "scatter" else 0
            results = [updated]
        if opcode.endswith("-start"):
            results = results[:1]
        passes = _passes(instruction)
        written = sum(self._leaving(computation, instruction, results))
        counted = operations(instruction, lookup, on_matrix_units=True)
        return Work(
            (counted,) if counted.count else (),
            sum(read.values()) + (passes - 1) * written,
            passes * written,
            cycles,
        )

    def _arriving(self, computation: Computation, reader: Instruction, name: str) -> int:
        """Return the bytes that are read from device memory for an operand.

        On a TPU an operand may be in vector memory: a kernel's result there costs nothing, and a
        transfer to it counts for the first kernel that reads it.
        """
        definition = computation.by_name.get(name)
        if definition is None:
            return 0
        size = sum(value.bytes for value in arrays(definition.shape))
        if not is_on_chip(definition.shape):
            return size
        if not definition.opcode.endswith("-done"):
            return 0
        return size if self._users(computation)[name][0] is reader else 0

    def _leaving(
        self, computation: Computation, instruction: Instruction, results: list[int]
    ) -> list[int]:
        """Return the bytes that are written to device memory.

        Results in a TPU's vector memory count if a transfer copies them to device memory.
        """
        types = array_types(instruction.shape)
        if not any(is_on_chip(type) for type in types):
            return results
        sent = self._sent(computation, instruction)
        return [
            size
            for index, size in enumerate(results)
            if index >= len(types) or not is_on_chip(types[index]) or index in sent
        ]

    def _sent(self, computation: Computation, instruction: Instruction) -> set[int]:
        """Return the results that transfers copy to device memory."""
        users = self._users(computation)
        indices = {instruction.name: 0} | {
            user.name: next(iter(dims(user.attribute("index"))), 0)
            for user in users.get(instruction.name, ())
            if user.opcode == "get-tuple-element"
        }
        return {
            index
            for name, index in indices.items()
            for user in users.get(name, ())
            if user.opcode == "copy-start" and not is_on_chip("".join(array_types(user.shape)[:1]))
        }

    def _users(self, computation: Computation) -> dict[str, list[Instruction]]:
        users = self._readers.get(computation.name)
        if users is None:
            users = self._readers[computation.name] = {}
            for instruction in computation.instructions:
                for name in dict.fromkeys(instruction.operands):
                    users.setdefault(name, []).append(instruction)
        return users


def _is_modelled(fused: Fused, on_tpu: bool) -> bool:
    """Return whether the work of all operations of a kernel can be derived from their shapes."""
    opcodes = fused.opcodes | {fused.instruction.opcode}
    if not _UNKNOWN.isdisjoint(opcodes) or ("sort" in opcodes and on_tpu):
        return False
    return "custom-call" not in opcodes or all(
        _is_modelled_call(inner) for inner in fused.inside if inner.opcode == "custom-call"
    )


def _is_modelled_call(instruction: Instruction) -> bool:
    target = instruction.attribute("custom_call_target")
    return (
        is_matmul_call(instruction)
        or is_convolution_call(instruction)
        or target in _MOVES
        or target.startswith(CUB)
    )


def _operations(
    body: Computation, needs: traffic.Needs, on_matrix_units: bool
) -> tuple[Operations, ...]:
    """Return the operations of a fusion, each scaled by its required share."""
    counts: dict[tuple[str, str, str], int] = {}
    waiting = [(body, needs)]
    while waiting:
        computation, required = waiting.pop()
        waiting += required.inner
        for instruction in computation.instructions:
            share = required.by_name.get(instruction.name, 0.0)
            if share == 0.0 or instruction.opcode in UNCOUNTED:
                continue
            part = operations(instruction, computation.by_name.get, on_matrix_units=on_matrix_units)
            if part.count:
                key = part.unit, part.dtype, part.precision
                counts[key] = counts.get(key, 0) + math.ceil(part.count * share)
    return tuple(
        Operations(unit, name, count, precision)
        for (unit, name, precision), count in counts.items()
    )


def _passes(instruction: Instruction) -> int:
    """Return how often an operation reads and writes its values."""
    if instruction.opcode == "fft":
        match = _LENGTHS.search(instruction.attributes)
        lengths = dims(match[1]) if match else ()
        return max(1, sum(1 if length <= _FFT_AT_ONCE else 2 for length in lengths))
    if instruction.opcode == "sort":
        return _bitonic_passes(instruction)
    return 1


def _of_radix_sort(radix: RadixSort) -> Work:
    """Return the work of a sort by CUB."""
    keys = radix.values[0].bytes
    moved = radix.passes * sum(value.bytes for value in radix.values)
    read = moved + radix.counts * keys
    if radix.rows == 1:
        return Work((), read, moved, efficiency=_ONE_ROW)
    cycles = math.ceil(radix.passes * radix.length / _PER_CYCLE)
    return Work((), read, moved, cycles, efficiency=_ROWS)


def _bitonic_passes(sort: Instruction) -> int:
    """Return the memory passes of XLA's own sort on a GPU: one for each of its kernels."""
    values = arrays(sort.shape)
    axis = _DIMENSION.search(sort.attributes)
    lengths = sizes(values[0]) if values else ()
    dimension = int(axis[1]) if axis else 0
    length = lengths[dimension] if dimension < len(lengths) else 1
    count = max(1, elements(sort.shape))
    width = max(1, sum(value.bytes for value in values) // count)
    return max(1, bitonic_kernels(length, width, SHARED_PER_BLOCK["cuda"]))
