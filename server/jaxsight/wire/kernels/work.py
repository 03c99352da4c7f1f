"""Arithmetic and memory traffic of a kernel."""

from __future__ import annotations

from dataclasses import dataclass


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
