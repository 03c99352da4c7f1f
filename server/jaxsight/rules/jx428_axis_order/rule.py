"""JX428: another order of a mesh's axes keeps large collectives inside of hosts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.targets.chips import Gpu
from jaxsight.targets.chips.links import HOST, LINKS
from jaxsight.text.units import MIB, size
from jaxsight.wire.kernel_graph import Kernel

RULE = Rule(
    __name__,
    "Another order of mesh axes keeps large collectives inside of hosts.",
    severity="warning",
)
LARGE = 4 * MIB
"""Bytes between hosts that another order saves at least: 80 µs at 50 GB/s of a network. A choice:
lower asks for another mesh in exchange for latencies, higher misses small models."""
_MOST_AXES = 5
"""Axes whose orders are tried: 120 of them."""

_Axes = tuple[tuple[str, int], ...]


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding if another order at least halves the bytes that cross hosts.

    It is about the largest collective that the order keeps inside.
    """
    if view.target is None or not isinstance(view.target.chip, Gpu):
        return
    devices = view.on_target.devices
    links = LINKS.get(view.target.chip.name)
    host = max(links.domain, HOST) if links is not None else HOST
    if devices <= host or devices % host or len({mesh.axes for mesh in view.meshes}) != 1:
        return
    axes = tuple(axis for axis in view.meshes[0].axes if axis[1] > 1)
    if not 1 < len(axes) <= _MOST_AXES or view.meshes[0].size != devices:
        return
    kernels = [
        kernel
        for kernel in view.on_target.graph.kernels
        if kernel.collective is not None and kernel.collective.axes
    ]
    crossing = [k for k in kernels if k.collective and _crosses(k.collective.groups, host)]
    before = sum(map(_bytes, crossing))
    orders = list(itertools.permutations(axes))
    order = min(orders, key=lambda each: sum(map(_bytes, _outside(kernels, each, host))))
    outside = _outside(kernels, order, host)
    after = sum(map(_bytes, outside))
    kept = [kernel for kernel in crossing if kernel not in outside]
    if before - after < LARGE or after * 2 > before or not kept:
        return
    worst = max(kept, key=_bytes)
    assert worst.collective is not None
    inside = ", ".join(dict.fromkeys(_names(worst)))
    yield Violation(
        f"{worst.collective.kind} of {size(_bytes(worst))} over {inside} crosses hosts",
        next((path for path in (*worst.equations, *worst.feeds) if path in view.flow.steps), ""),
        help=f"order the axes of the mesh `{', '.join(name for name, _ in order)}`: "
        f"then {inside} is inside of hosts",
        notes=(
            f"a host has {host} GPUs, and devices are numbered host by host",
            (
                f"collectives across hosts move {size(before)}, "
                f"in the other order {size(after) if after else 'nothing'}"
            ),
        ),
    )


def _names(kernel: Kernel) -> tuple[str, ...]:
    return kernel.collective.axes if kernel.collective is not None else ()


def _bytes(kernel: Kernel) -> int:
    """Return what a collective moves in one run of the program."""
    return kernel.collective.bytes * kernel.runs if kernel.collective is not None else 0


def _crosses(groups: Iterable[tuple[int, ...]], host: int) -> bool:
    """Return whether devices of different hosts communicate."""
    return any(len({device // host for device in group}) > 1 for group in groups)


def _outside(kernels: Iterable[Kernel], axes: _Axes, host: int) -> list[Kernel]:
    """Return the collectives that cross hosts if the mesh has its axes in an order."""
    return [kernel for kernel in kernels if _crosses(_groups_of(axes, _names(kernel)), host)]


def _groups_of(axes: _Axes, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the devices that communicate over some axes, numbered row by row."""
    groups: dict[tuple[int, ...], list[int]] = {}
    places = itertools.product(*(range(parts) for _, parts in axes))
    for device, place in enumerate(places):
        fixed = tuple(
            index for (name, _), index in zip(axes, place, strict=True) if name not in names
        )
        groups.setdefault(fixed, []).append(device)
    return [tuple(group) for group in groups.values()]
