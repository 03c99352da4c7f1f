"""What is known of a Pallas kernel before it is compiled, for one call of it.

As part of the protocol with a tracer, this uses only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass

VMEM, SMEM, SHARED, ELSEWHERE = "VMEM", "SMEM", "shared memory", "elsewhere"
"""The memories of a TPU's core, and of a GPU's multiprocessor, in which arrays of a kernel are;
`elsewhere` for main memory, and for semaphores."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A block that lies completely outside of its array."""

    position: tuple[int, ...]
    """The position in the grid at which the index map returns it."""
    start: tuple[int, ...]
    """The index of its first element."""


@dataclass(frozen=True, slots=True)
class KernelArray:
    """An array of a kernel: a block of an operand or a result, or scratch memory."""

    name: str
    shape: tuple[int, ...]
    """The shape of the block; an axis that the kernel does not see has size 1."""
    dtype: str
    memory: str
    """One of the above: for a `pallas_call`, that on a TPU."""
    buffers: int
    """How many blocks are in memory at once: two where the next one is copied meanwhile."""
    bytes: int
    """The size of all buffers, with their padding."""
    array: tuple[int, ...] = ()
    """The shape of the whole array; empty for scratch memory and prefetched scalars."""
    outside: Outside | None = None


@dataclass(frozen=True, slots=True)
class PallasKernel:
    """A call of a kernel."""

    name: str
    grid: tuple[int, ...]
    """The sizes of the grid; -1 for one that is computed."""
    arrays: tuple[KernelArray, ...]
    vmem_limit: int
    """The bytes of VMEM that the kernel asks for (`vmem_limit_bytes`), 0 for the default."""

    def used(self, memory: str) -> int:
        """Return the bytes of all arrays in a memory."""
        return sum(array.bytes for array in self.arrays if array.memory == memory)

    def vmem_may_be(self, usual: int, all_of_it: int) -> int:
        """Return the bytes of VMEM that it may take: the usual ones, or those it asks for."""
        return min(self.vmem_limit, all_of_it) if self.vmem_limit else usual

    def used_by_itself(self, memory: str) -> int:
        """Return the bytes of scratch memory and prefetched scalars, which no call goes without."""
        own = (array for array in self.arrays if array.memory == memory and not array.array)
        return sum(array.bytes for array in own)
