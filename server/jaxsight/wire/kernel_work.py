"""Arithmetic and memory traffic of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Operations:
    """Arithmetic of one run of a kernel, for one unit, dtype, precision and opcode.

    `unit` is `matrix` or `vector`, `dtype` that of the operands as HLO names it (`f32`, `c64`).
    `precision` is `high`, `highest`, a dot algorithm (`dot_bf16_bf16_f32_x3`) or empty.
    """

    unit: str
    dtype: str
    count: int
    """Real operations; a fused multiply-add counts as two."""
    precision: str = ""
    opcode: str = ""
    """The HLO operation, if one takes another number of instructions than an addition does."""
    padded: int = 0
    """The operations with those on the padding of the unit's tiles; 0 if it is not known."""


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic and memory traffic of one run of a kernel, for time estimates; sizes in bytes."""

    operations: tuple[Operations, ...] = ()
    read: int = 0
    """Bytes of the inputs that are accessed: the rows of a gather, not its table."""
    written: int = 0
    cycles: int = 0
    """Cycles according to libtpu's cost model; on GPUs, those of a sort by CUB in which blocks wait
    or have a row, else 0.
    """
    efficiency: float = 1.0
    """The share of the memory bandwidth that such a kernel reaches at most."""
    repeated: int = 0
    """Bytes that are read besides `read`, but lie in what was read before: rows of a gather whose
    indices are more than the rows of its table."""
    blocks: int = 0
    """Thread blocks of a kernel that may have fewer than the chip has cores; 0 if it has more."""
    atomics: Atomics | None = None
    """What a scatter adds to places that several of its indices may name."""
    before: Work | None = None
    """Work that is done before the rest: kernels that autotuning adds on the device to prepare the
    operands, copies of what is sorted, blocks that wait for one another.
    """


@dataclass(frozen=True, slots=True)
class Atomics:
    """Updates of a scatter that wait for one another where indices are equal."""

    sectors: int
    """Updates of 32 bytes in a row, if no two indices are equal."""
    serial: int
    """Updates of one such place, if all indices are equal; 0 if XLA repeats each until no other
    came between (compare-and-swap), as the number of repetitions is not known."""


# What autotuning on the device decides of a program that was compiled without the device.


ALIGNMENT = 256
"""Bytes that XLA aligns each temporary array of a GPU to (`kXlaAllocatedBufferAlignBytes` in
`xla/service/gpu/gpu_constants.h`)."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """What autotuning on the device may make of a kernel that was compiled without it."""

    library: str
    """The library that it may be given to, `cuBLAS`, or that it is given to: `cuDNN`, `CUB`."""
    kernels: int = 1
    """Maximum number of kernels in its place: the library computes nothing that is fused with it.
    """
    calls: int = 1
    """Calls of the library among them."""
    workspace: int | None = None
    """Maximum bytes of the library's workspace; `None` if unknown."""
    buffers: int = 0
    """Bytes of the arrays between these kernels."""
    spare: int = 0
    """Maximum bytes of scratch memory in the temporaries that the device may not need."""


def at_least(temporaries: int, undecided: Sequence[Undecided]) -> int:
    """Return the minimum size of temporaries in bytes, given that of the compile; -1 if unknown."""
    spare = max((each.spare for each in undecided), default=0)
    return max(temporaries - spare, min(temporaries, 0))


def at_most(temporaries: int, undecided: Sequence[Undecided]) -> int:
    """Return the maximum size of temporaries in bytes, given that of the compile; -1 if unknown."""
    more = scratch_at_most(undecided)
    return -1 if temporaries < 0 or more is None else temporaries + more


def scratch_at_most(undecided: Sequence[Undecided]) -> int | None:
    """Return the maximum bytes of temporaries that are added; `None` if unknown.

    The workspace and the arrays of one kernel are free for the next one, so that the largest count.
    Each call of a library also has a table of its results, which takes `ALIGNMENT`.
    """
    if any(each.workspace is None for each in undecided):
        return None
    largest = max(((each.workspace or 0) + each.buffers for each in undecided), default=0)
    return largest + ALIGNMENT * sum(each.calls for each in undecided)


# Transfers between the memory of the host and that of the device, in a kernel graph.


TO_HOST, TO_DEVICE, WITHIN_HOST = "to host", "to device", "within host"

Transferred: TypeAlias = Literal[
    "copy", "slice", "update", "computation", "callback", "infeed", "outfeed", "send", "receive"
]
COPY: Final = "copy"
SLICE: Final = "slice"
UPDATE: Final = "update"
"""What is moved: a whole array, a part of one, or an array into a part of a larger one."""
COMPUTATION: Final = "computation"
"""The operands and results of a computation on the host."""


@dataclass(frozen=True, slots=True)
class HostTransfer:
    """A transfer between the host and the device; `bytes` are those of one execution."""

    name: str
    """The instruction's name in the HLO."""
    direction: str
    """`to host`, `to device`, or `within host` for a copy that does not cross the link."""
    what: Transferred
    type: str
    """The arrays that are moved, as HLO prints them without layouts: `f32[8,16], s32[]`."""
    bytes: int
    equations: tuple[str, ...] = ()
    """The paths of its equations; usually none, as XLA drops those of `device_put`."""
    feeds: tuple[str, ...] = ()
    """Without equations of its own, those that read its result, or else computed its operand."""
    is_async: bool = False
    """Whether kernels run between its start and its end."""
    kernel: int = -1
    """The kernel that makes the transfer, such as a callback; -1 if it is none."""
    loops: tuple[int, ...] = ()
    """The loops around it, outermost first."""
    branch: int = -1
    """The innermost branch around it; -1 if there is none."""
    runs: int = 1
    """Executions in one run of the program; an unknown trip count counts once."""
    at_least: int = 1
    """The same without loops of unknown trip count."""
    instruction: int = 0
    """Its line in the HLO text, from 0."""

    @property
    def is_offload(self) -> bool:
        """Whether it moves an array between memories, and is no call of the host."""
        return self.what in (COPY, SLICE, UPDATE)
