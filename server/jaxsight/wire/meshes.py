"""Meshes of devices, and how arrays and programs are distributed over them.

Devices of a program are numbered from 0 in the order of its device assignment, as in the replica
groups of its HLO; they are no ids of JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

AUTO, EXPLICIT, MANUAL = "auto", "explicit", "manual"

Spec = tuple[tuple[str, ...], ...]
"""The mesh axes that each dimension of an array is divided over, major to minor.

`()` for a dimension that is not divided. An empty spec is that of a scalar or of a replicated
array.
"""


def over(axes: tuple[str, ...]) -> str:
    """Return what a size is followed by that is divided over axes: `@data`, `@(x,y)`."""
    if not axes:
        return ""
    return f"@{axes[0]}" if len(axes) == 1 else f"@({','.join(axes)})"


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh of devices."""

    axes: tuple[tuple[str, int], ...]
    """Names and sizes of the axes, in order."""
    types: tuple[str, ...] = ()
    """`auto`, `explicit` or `manual` for each axis; empty if all are automatic."""
    devices: tuple[int, ...] = ()
    """The program's devices in the order of the mesh, row by row; empty if that is their own."""

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(size for _, size in self.axes)

    @property
    def text(self) -> str:
        """The axes as `data=2, model=4`."""
        return ", ".join(f"{name}={size}" for name, size in self.axes)

    def ordered(self, names: Collection[str]) -> tuple[str, ...]:
        """Return names of axes in the order of the mesh."""
        return tuple(name for name, _ in self.axes if name in names)


@dataclass(frozen=True, slots=True)
class Sharding:
    """How a value is distributed over a mesh.

    Of a value in a `shard_map`, the shape is that on one device along each manual axis.
    """

    mesh: Mesh
    spec: Spec
    is_given: bool = False
    """Whether the array or the argument has it, and the program is not traced with it: its axes
    are automatic.
    """
    varying: tuple[str, ...] = ()
    """The manual axes along which the devices have different values, if JAX tracks that."""
    unreduced: tuple[str, ...] = ()
    """Axes over which the value still has to be summed."""

    def local_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape on one device of a global shape, which the axes divide."""
        sizes = dict(self.mesh.axes)
        counts = (math.prod(sizes.get(axis, 1) for axis in axes) for axes in self.spec)
        return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a program is distributed over devices, as XLA needs it to compile."""

    partitions: int
    replicas: int = 1
    """More than one for `pmap` of JAX 0.8 and 0.9 only."""
    is_shardy: bool = True
    """Whether Shardy partitions the program; otherwise GSPMD does."""
    free_inputs: tuple[bool, ...] = ()
    """For each parameter of the program, whether the partitioner chooses its sharding."""
    free_outputs: tuple[bool, ...] = ()
    """The same for each result."""
    meshes: tuple[Mesh, ...] = ()
    """The meshes that the program names, without duplicates."""

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.partitions * self.replicas


ONE_DEVICE = Distribution(1)


@dataclass(frozen=True, slots=True)
class Divided:
    """A global type as HLO prints it, without layout (`f32[8,16]`), and how it is divided."""

    type: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sharding of a value before the program is partitioned, which the partitioner chose."""

    equation: str
    """The path of the equation that computes it, `parameter 0` or `output 0`."""
    type: str
    """The global type as HLO prints it, without layout: `f32[8,16]`."""
    spec: Spec
    unreduced: tuple[str, ...] = ()
    """Axes over which the value still has to be summed."""
    operands: tuple[Divided, ...] = ()
    """Operands of the operation, as far as their shardings are known."""


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """A value that the partitioner could only reshard by replicating it on every device.

    XLA logs this as an involuntary full rematerialization (`spmd_partitioner.cc`).
    """

    equation: str
    type: str
    """The type of the whole value."""
    source: str
    """The sharding that the value has, as HLO prints it."""
    target: str
    """The sharding that was wanted."""
