"""What autotuning on the device decides of a program that was compiled without the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
