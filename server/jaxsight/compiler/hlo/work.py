"""Estimate the arithmetic and the device memory traffic of one execution of a kernel."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat

from jaxsight.compiler.hlo import flops, sorts, traffic
from jaxsight.compiler.hlo.distributed.collectives import COLLECTIVES, STARTS
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.host_moves import is_on_chip
from jaxsight.compiler.hlo.walk import ANNOTATIONS
from jaxsight.hlo.shapes import (
    array_types,
    arrays,
    dims,
    dtype,
    elements,
    is_tiled,
    sizes,
    total_bytes,
)
from jaxsight.hlo.text import Computation, Instruction
from jaxsight.targets.chips.gpus import WARP
from jaxsight.wire.kernel_work import Atomics, Operations, Work

_MOVES = ANNOTATIONS | {"X64SplitLow", "X64SplitHigh", "X64Combine"}
"""Custom calls that only move data, or are annotations for the compiler."""

_UNKNOWN = frozenset(
    {
        "cholesky", "triangular-solve", "infeed", "outfeed", "rng", "call", "while",
        "conditional", "topk", *COLLECTIVES, *STARTS,
    }
)  # fmt: skip
"""Operations whose time cannot be derived from their shapes."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_TILE = re.compile(r'"__triton".*?"output_tiles":\[\{"sizes":\[([^\]]*)\]')

_ONE_ROW = 0.58
_ROWS = 0.49
_PER_CYCLE = 0.44
"""Shares of the bandwidth that CUB's sorts reach, and the elements of a row that a block moves in a
cycle. Measured on an H100 with CUDA 13: 2^22 and 2^24 keys of 32 bits with values of 32 and 64
bits, 512 rows of 50,257, and 64 rows of 65,536, fewer than the GPU has multiprocessors. The paper
on Onesweep has 29.4e9 keys of 32 bits a second on an A100, which is a share of 0.68.
"""

_LOOK_BACK = 13_000
"""Cycles in which the blocks of a pass over one row wait for one another: with 2^16 and 2^20 keys a
pass takes about 6.5 µs longer than its bytes, at 1.98 GHz (the same H100)."""
_STRIDED = 1.2
"""Passes of an FFT over an axis that is not the last: of 256^3 complex numbers on an H100, 109 µs
for each strided axis and 92 µs for the contiguous one."""
_FFT_AT_ONCE = 8192
"""The longest FFT that fits into shared memory and so needs one pass over memory (D. Tolmachev,
"VkFFT", IEEE Access 11, 2023).
"""


def work_of(fused: Fused, computation: Computation, capability: str = "") -> Work | None:
    """Return the work of one execution of a kernel, or `None` without a model of it.

    Args:
        computation: the computation of its instruction.
        capability: the compute capability of the GPU, such as `9.0`; empty if unknown.
    """
    instruction = fused.instruction
    on_tpu = is_tiled(instruction.shape)
    if not _is_modelled(fused, on_tpu):
        return None
    estimated = _CYCLES.search(instruction.attributes)
    cycles = int(estimated[1]) if estimated else 0
    body = fused.body
    if (radix := sorts.radix_sort(instruction, capability)) is not None:
        return _of_radix_sort(radix)
    sort = next((inner for inner in fused.inside if inner.opcode == "sort"), None)
    if sort is not None:
        return _sorted(sort, body or computation)
    if body is None:
        return _single(instruction, computation, cycles)
    needs = traffic.needs(body, fused)
    shares = [needs.by_name.get(parameter.name, 0.0) for parameter in body.parameters()]
    passes = max(map(_passes, fused.inside), default=1.0)
    read = sum(
        math.ceil(_arriving(computation, instruction, name) * share)
        for name, share in zip(instruction.operands, chain(shares, repeat(1.0)), strict=False)
    )
    written = sum(_leaving(computation, instruction, needs.written))
    matrix_units = on_tpu or instruction.attribute("kind") not in ("kLoop", "kInput")
    # Each pass except the first reads the output of the previous pass.
    work = Work(
        _operations(body, needs, matrix_units),
        math.ceil(read + (passes - 1) * written),
        math.ceil(passes * written),
        cycles,
    )
    if on_tpu:
        return work
    repeated = sum(
        traffic.repeated_bytes(inner, within.by_name.get)
        for within, required in _within(body, needs)
        for inner in within.instructions
        if inner.opcode == "gather" and required.by_name.get(inner.name)
    )
    return replace(
        work,
        repeated=repeated + _far_apart(instruction) * (read + written),
        blocks=_rows(fused),
        atomics=_atomics(fused, body, needs),
        before=_prepared(fused, body),
    )


def _single(instruction: Instruction, computation: Computation, cycles: int) -> Work:
    """Return the work of an operation that is a kernel by itself."""
    lookup = computation.by_name.get
    opcode = instruction.opcode
    names = list(dict.fromkeys(instruction.operands))
    read = {name: _arriving(computation, instruction, name) for name in names}
    results = [value.bytes for value in arrays(instruction.shape)]
    if flops.is_matmul_call(instruction) or flops.is_convolution_call(instruction):
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
    written = sum(_leaving(computation, instruction, results))
    counted = flops.operations(instruction, lookup, on_matrix_units=True)
    return Work(
        (counted,) if counted.count else (),
        math.ceil(sum(read.values()) + (passes - 1) * written),
        math.ceil(passes * written),
        cycles,
    )


def _arriving(computation: Computation, reader: Instruction, name: str) -> int:
    """Return the bytes that are read from device memory for an operand.

    On a TPU an operand may be in vector memory: a kernel's result there costs nothing, and a
    transfer to it counts for the first kernel that reads it.
    """
    definition = computation.by_name.get(name)
    if definition is None:
        return 0
    if is_on_chip(definition.shape) and not (
        definition.opcode.endswith("-done") and computation.users[name][0] is reader
    ):
        return 0
    return total_bytes(definition.shape)


def _leaving(computation: Computation, instruction: Instruction, results: list[int]) -> list[int]:
    """Return the bytes that are written to device memory.

    Results in a TPU's vector memory count if a transfer copies them to device memory.
    """
    types = array_types(instruction.shape)
    if not any(is_on_chip(type) for type in types):
        return results
    users = computation.users
    indices = {instruction.name: 0} | {
        user.name: next(iter(dims(user.attribute("index"))), 0)
        for user in users.get(instruction.name, ())
        if user.opcode == "get-tuple-element"
    }
    sent = {
        index
        for name, index in indices.items()
        for user in users.get(name, ())
        if user.opcode == "copy-start" and not is_on_chip("".join(array_types(user.shape)[:1]))
    }
    return [
        size
        for index, size in enumerate(results)
        if index >= len(types) or not is_on_chip(types[index]) or index in sent
    ]


def _is_modelled(fused: Fused, on_tpu: bool) -> bool:
    """Return whether the work of all operations of a kernel can be derived from their shapes."""
    opcodes = fused.opcodes | {fused.instruction.opcode}
    if not _UNKNOWN.isdisjoint(opcodes) or ("sort" in opcodes and on_tpu):
        return False
    return all(
        flops.is_matmul_call(call)
        or flops.is_convolution_call(call)
        or (target := call.attribute("custom_call_target")) in _MOVES
        or target.startswith(sorts.CUB)
        for call in fused.inside
        if call.opcode == "custom-call"
    )


def _operations(
    body: Computation, needs: traffic.Needs, on_matrix_units: bool
) -> tuple[Operations, ...]:
    """Return the operations of a fusion, each scaled by its required share."""
    counts = Counter[tuple[str, str, str, str]]()
    for computation, required in _within(body, needs):
        contracted = flops.fused_multiplications(computation)
        for instruction in computation.instructions:
            share = required.by_name.get(instruction.name, 0.0)
            if share == 0.0 or instruction.opcode in flops.UNCOUNTED:
                continue
            part = flops.operations(
                instruction, computation.by_name.get, on_matrix_units=on_matrix_units
            )
            if part.count:
                opcode = flops.FUSED if instruction.name in contracted else part.opcode
                key = part.unit, part.dtype, part.precision, opcode
                counts[key] += math.ceil(part.count * share)
    return tuple(
        Operations(unit, name, count, precision, opcode)
        for (unit, name, precision, opcode), count in counts.items()
    )


def _within(body: Computation, needs: traffic.Needs) -> Iterator[tuple[Computation, traffic.Needs]]:
    """Yield the computation of a fusion and those of the fusions within."""
    waiting = [(body, needs)]
    while waiting:
        computation, required = waiting.pop()
        waiting += required.inner
        yield computation, required


def _far_apart(fusion: Instruction) -> int:
    """Return 1 if a Triton kernel has tiles of rows that are not adjacent in memory, else 0.

    XLA tiles softmax like this to reuse a mask. Such kernels took 1.9 and 2.4 times as long on an
    H100 as others that move as many bytes (`attention` and `dpa` in `docs/estimates.md`).
    """
    tile = _TILE.search(fusion.attributes)
    values = arrays(fusion.shape)
    if not tile or not values:
        return 0
    lengths = sizes(values[0])
    tiled = [int(length) for length in re.findall(r"\d+", tile[1])]
    if len(tiled) != len(lengths):
        return 0
    rows = [axis for axis, length in enumerate(tiled[:-1]) if length > 1]
    return int(bool(rows) and any(each > 1 for each in lengths[rows[-1] + 1 : -1]))


def _rows(fused: Fused) -> int:
    """Return the rows of a reduction that are not split among blocks, 0 for other kernels.

    A block reduces a row or several (xla/backends/gpu/codegen/emitters/reduction.cc); long rows of
    few are two reductions in the HLO (xla/hlo/transforms/simplifiers/tree_reduction_rewriter.cc).
    """
    if fused.instruction.attribute("kind") != "kInput":
        return 0
    return next((elements(each.shape) for each in fused.roots() if each.opcode == "reduce"), 0)


_INTEGERS = frozenset({"s32", "u32", "s64", "u64"})
_DIRECT = {
    "add": _INTEGERS | {"f16", "f32", "f64"},
    "maximum": _INTEGERS | {"f32"},
    "minimum": _INTEGERS,
}
"""What XLA combines by an atomic instruction instead of compare-and-swap
(`rewriteAsDirectAtomicRMW` in xla/codegen/emitters/transforms/lower_tensors.cc).
"""


def _atomics(fused: Fused, body: Computation, needs: traffic.Needs) -> Atomics | None:
    """Return how the updates of a scatter may wait for one another; `None` if they never do."""
    for scatter, lookup in (
        (scatter, computation.by_name.get)
        for computation, _ in _within(body, needs)
        for scatter in computation.instructions
        if scatter.opcode == "scatter" and "unique_indices=true" not in scatter.attributes
    ):
        (name, *_) = scatter.called.get("to_apply", ("",))
        combined = fused.computation(name)
        root = combined.root if combined is not None else None
        if root is None or root.opcode == "parameter":
            continue
        sectors, each = traffic.atomic_sectors(scatter, lookup)
        updates = elements(flops.operand(scatter, lookup, len(scatter.operands) - 1))
        direct = dtype(scatter.shape) in _DIRECT.get(root.opcode, ())
        return Atomics(sectors, math.ceil(updates / each) if direct else 0)
    return None


_THROUGH = frozenset(
    {"bitcast", "reshape", "transpose", "copy", "convert", "slice", "broadcast", "pad"}
)
"""Operations that a product's kernel applies to its operands as it loads them."""


def _prepared(fused: Fused, body: Computation) -> Work | None:
    """Return the work of kernels that compute the operands of a product on the device.

    Ahead of time XLA fuses them with the product by Triton, without measuring. On the device it
    measures this and cuBLAS with all operands in memory (xla/backends/gpu/autotuner/
    fission_backend.cc), which was faster for each such product that was measured on an H100. cuBLAS
    multiplies bytes only with transposed operands.
    """
    written = transposed = 0
    for dot in fused.inside:
        if dot.opcode != "dot" or dot.name not in body.by_name:
            continue
        for name in dict.fromkeys(dot.operands):
            value = body.by_name.get(name)
            size = total_bytes(value.shape) if value is not None else 0
            while value is not None and value.opcode in _THROUGH and value.operands:
                if value.opcode in ("transpose", "copy") and dtype(value.shape) in ("s8", "u8"):
                    transposed += elements(value.shape)
                value = body.by_name.get(value.operands[0])
            if value is not None and value.opcode not in ("parameter", "constant"):
                written += size
    if not written and not transposed:
        return None
    moved = written + transposed
    transpose = Operations(flops.VECTOR, "s8", transposed, "", "transpose")
    return Work((transpose,) if transposed else (), moved, moved)


def _sorted(sort: Instruction, computation: Computation) -> Work | None:
    """Return the work of XLA's own sort on a GPU, see `sorts`.

    Stages within a tile are bound by instructions, those between tiles by memory.
    """
    if (lengths := sorts.sorted_lengths(sort)) is None:
        return None
    values = arrays(sort.shape)
    length, rows = lengths
    count = length * rows
    written = total_bytes(sort.shape)
    operands = [computation.by_name.get(name) for name in dict.fromkeys(sort.operands)]
    read = sum(total_bytes(each.shape) for each in operands if each and each.opcode != "iota")
    width = max(1, written // max(count, 1))
    tile = sorts.tile_length(max(length, 1), width, sorts.SHARED_PER_BLOCK["cuda"])
    separate = sorts.separate_stages(length, tile)
    kernels = sorts.bitonic_kernels(length, width, sorts.SHARED_PER_BLOCK["cuda"]) - separate
    counted = flops.operations(sort, computation.by_name.get, on_matrix_units=False)
    stages = (length - 1).bit_length() * ((length - 1).bit_length() + 1) // 2
    comparisons = counted.count * (stages - separate) // max(stages, 1) * len(values)
    idle = max(1, sorts.UNROLLED * WARP // tile)  # a short row leaves lanes of its warp idle
    moved = sum(
        value.bytes
        for value, name in zip(values, sort.operands, strict=False)
        if (given := computation.by_name.get(name)) is not None and given.opcode == "parameter"
    )
    between = separate * written
    return Work(
        (replace(counted, padded=comparisons * idle),) if comparisons else (),
        read + max(0, kernels - 1) * written,
        max(1, kernels) * written,
        blocks=math.ceil(count / tile),
        before=Work((), between + moved, between + moved) if between or moved else None,
    )


def _passes(instruction: Instruction) -> float:
    """Return how often an operation reads and writes its values; more than once for an FFT.

    An inverse one is scaled by a kernel of its own, and XLA copies the operand of one with a real
    result, which cuFFT overwrites (`RunFft` in xla/backends/gpu/runtime/fft_thunk.cc).
    """
    if instruction.opcode != "fft":
        return 1
    *strided, last = flops.fft_lengths(instruction)
    passes = 1.0 if last <= _FFT_AT_ONCE else 2.0
    passes += sum(_STRIDED if length <= _FFT_AT_ONCE else 2 * _STRIDED for length in strided)
    return passes + {"IFFT": 1, "IRFFT": 2}.get(instruction.attribute("fft_type"), 0)


def _of_radix_sort(radix: sorts.RadixSort) -> Work:
    """Return the work of a sort by CUB."""
    keys = radix.values[0].bytes
    moved = radix.passes * sum(value.bytes for value in radix.values)
    read = moved + radix.counts * keys
    if radix.rows == 1:
        waiting = Work(cycles=radix.passes * _LOOK_BACK)
        return Work((), read, moved, efficiency=_ONE_ROW, before=waiting)
    cycles = math.ceil(radix.passes * radix.length / _PER_CYCLE)
    return Work((), read, moved, cycles, efficiency=_ROWS)
