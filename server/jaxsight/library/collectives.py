"""The collectives of a compiled function, and how its arguments and results are sharded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxsight.wire.kernel_graph import CollectiveKind, Graph, Kernel
from jaxsight.wire.meshes import Chosen

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec


@dataclass(frozen=True)
class CollectiveFigures:
    """A collective of a compiled program."""

    kind: CollectiveKind
    """`all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `collective-permute`, …"""
    bytes: int
    """The size of the data on one device in one run: of its operands or its results, whichever is
    larger. It is no network traffic.
    """
    groups: tuple[tuple[int, ...], ...]
    """Devices that communicate with each other; pairs of source and target for
    `collective-permute`. Devices are numbered from 0 in the order of the program's.
    """
    axes: tuple[str, ...]
    """The mesh axes that they communicate over; empty if the groups are not those of axes."""
    inserted: bool
    """Whether the partitioner inserted it: the program does not ask for it."""
    is_async: bool
    """Whether other kernels run between its start and its end."""
    reduction: str
    """The operation of a reduction, e.g. `add`; empty for others."""
    runs: int
    """Executions in one run of the program: the iterations of its loops."""
    lines: tuple[str, ...]
    """Its source lines (`model.py:12`), or those that it communicates for."""


def collectives(graph: Graph, lines: Callable[[Kernel], list[str]]) -> Iterator[CollectiveFigures]:
    """Yield the collectives of a program in its order."""
    for kernel in graph.collectives:
        if (collective := kernel.collective) is not None:
            yield CollectiveFigures(
                kind=collective.kind,
                bytes=collective.bytes,
                groups=collective.groups,
                axes=collective.axes,
                inserted=collective.inserted,
                is_async=collective.is_async,
                reduction=collective.reduction,
                runs=kernel.runs,
                lines=tuple(lines(kernel)),
            )


def specs(named: Iterable[tuple[str, Chosen]]) -> dict[str, PartitionSpec]:
    """Return shardings by name as JAX's."""
    from jax.sharding import PartitionSpec

    make: Any = PartitionSpec
    return {
        name: make(*(axes[0] if len(axes) == 1 else axes or None for axes in chosen.spec))
        for name, chosen in named
    }
