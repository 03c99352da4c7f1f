"""Find the instructions that move data between the host and the device.

XLA's host offloading leaves copies between memory spaces, and slices and updates in place of arrays
on the host (`xla/hlo/transforms/host_offloader.cc`).
On GPUs they are copies of the driver, not kernels: `EmitCopyStartThunk` and `EmitFusion` in
`xla/backends/gpu/codegen`, for fusions that a `dynamic_slice_config` or `__dynamic_memcpy` marks.
On TPUs they are DMAs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from jaxsight.compiler.hlo.fused import Fused
from jaxsight.hlo.shapes import HOST_MARK, HOST_SPACE, KEPT, array_types, arrays, is_tiled, parts
from jaxsight.hlo.text import HOST_EXECUTE, Computation, HloModule, Instruction
from jaxsight.wire.kernel_graph import Value
from jaxsight.wire.kernel_work import (
    COMPUTATION,
    COPY,
    SLICE,
    TO_DEVICE,
    TO_HOST,
    UPDATE,
    WITHIN_HOST,
    Transferred,
)

# Memory spaces: where XLA stores a value, as the `S(…)` of its layout says.
#
# Sources:
# * `kDefaultMemorySpace`, `kGenericFastMemorySpace` and `kHostMemorySpace` in openxla/xla,
#   `xla/layout.h`.
# * `kCollectiveMemorySpaceColor` and `kTempBufferMemorySpaceColor` in
#   `xla/service/gpu/gpu_memory_space_assignment.h`: on GPUs both are memory of the device.
# * libtpu is not public; in its HLO, spaces 1 to 4 are those of a TensorCore (vector memory, flags
#   of transfers, scalar memory).


_SPACE = re.compile(r"S\((\d+)\)")


@lru_cache(maxsize=KEPT)
def _space_of(shape: str) -> int:
    """Return the space where the first array of a type is stored; 0 is memory of the device."""
    return int(match[1]) if (match := _SPACE.search(shape)) is not None else 0


def is_on_host(shape: str, platform: str) -> bool:
    """Return whether a value is in the memory of the host, and that is not the device's own.

    Args:
        platform: `cpu`, `cuda`, `rocm` or `tpu`.
    """
    return platform != "cpu" and _space_of(shape) == HOST_SPACE


def is_on_chip(shape: str) -> bool:
    """Return whether a value is in a TPU's vector or scalar memory, not in its HBM."""
    return is_tiled(shape) and _space_of(shape) not in (0, HOST_SPACE)


_MOVES: Mapping[str, Transferred] = {
    "copy": COPY,
    "slice": SLICE,
    "dynamic-slice": SLICE,
    "dynamic-update-slice": UPDATE,
}
_FUSIONS = frozenset({"fusion", "fusion-start", "async-start"})
_BY_DRIVER = ("dynamic_slice_config", "__dynamic_memcpy")
"""What marks a fusion that a GPU's driver copies, in its `backend_config` or that of its slice."""


@dataclass(frozen=True, slots=True)
class Move:
    """What an instruction moves between the host and the device."""

    direction: str
    what: Transferred
    value: Value
    is_kernel: bool = False
    """Whether a kernel moves it, which reads or writes the memory of the host itself."""


def moves(
    instruction: Instruction, computation: Computation, module: HloModule, platform: str
) -> list[Move]:
    """Return what an instruction moves between the host and the device, if anything.

    Args:
        computation: the computation of the instruction.
        platform: `cpu`, `cuda`, `rocm` or `tpu`.
    """
    if instruction.attribute("custom_call_target") == HOST_EXECUTE:
        return list(_accessed(instruction, computation, platform, COMPUTATION))
    shapes = [each.shape for each in (instruction, *computation.operands(instruction))]
    if not any(HOST_MARK in shape for shape in shapes):
        return []
    is_fusion = instruction.opcode in _FUSIONS
    if not is_fusion and (what := _MOVES.get(instruction.opcode.removesuffix("-start"))):
        return list(_moved(instruction, what, computation, platform))
    found, marked = list[Move](), [instruction]
    if is_fusion and (body := Fused(instruction, module).body) is not None:
        marked += body.instructions
        for inner in body.instructions:
            if inner.opcode in _FUSIONS:
                found += moves(inner, body, module, platform)
            elif what := _MOVES.get(inner.opcode):
                found += _moved(inner, what, body, platform)
    if not found:
        return list(_accessed(instruction, computation, platform))
    by_driver = platform == "tpu" or any(
        mark in inner.attributes for inner in marked for mark in _BY_DRIVER
    )
    return found if by_driver else [replace(move, is_kernel=True) for move in found]


def _moved(
    instruction: Instruction, what: Transferred, computation: Computation, platform: str
) -> Iterator[Move]:
    """Yield what an operation that only moves data moves to another memory."""
    operands = instruction.operands[1 if what == UPDATE else 0 :]
    source = computation.by_name.get(operands[0]) if operands else None
    result = _result(instruction)
    if source is None or not result:
        return
    moved = arrays(source.shape if what == UPDATE else result)[:1]
    before, after = (is_on_host(each, platform) for each in (source.shape, result))
    directions = {(True, True): WITHIN_HOST, (False, True): TO_HOST, (True, False): TO_DEVICE}
    direction = directions.get((before, after))
    if moved and direction is not None:
        yield Move(direction, what, moved[0])


def _accessed(
    instruction: Instruction, computation: Computation, platform: str, what: Transferred = COPY
) -> Iterator[Move]:
    """Yield what a kernel that computes reads from the memory of the host, and writes there.

    Of a `COMPUTATION` on the host, yield its operands and results that are on the device: they are
    copied to the host and back (`xla/backends/gpu/runtime/host_execute_thunk.cc`).
    """
    on_host = what == COMPUTATION
    operands = computation.operands(instruction)
    is_start = instruction.opcode.endswith("-start")
    results = _result(instruction) if is_start else instruction.shape
    for is_read, shapes in ((True, [operand.shape for operand in operands]), (False, [results])):
        for type_ in (type_ for shape in shapes for type_ in array_types(shape)):
            elsewhere = is_on_host(type_, platform) is not on_host
            if elsewhere and (values := arrays(type_)):
                direction = TO_HOST if is_read is on_host else TO_DEVICE
                yield Move(direction, what, values[0], True)


def _result(instruction: Instruction) -> str:
    """Return the type of the result: that of a start is in a tuple with its operands.

    `CreateCopyStart` in `xla/hlo/ir/hlo_instruction.cc` puts it first, `CreateAsyncStart` second.
    """
    elements = parts(instruction.shape)
    if not elements:
        return instruction.shape
    return elements[0 if instruction.opcode == "copy-start" else 1] if len(elements) > 1 else ""
