"""Parse the groups of devices that communicate, and find the mesh axes that they are those of.

XLA prints groups in four formats (`xla/hlo/ir/replica_group.cc`, `collective_device_list.h`,
`mesh_and_axis.cc`):

* `{{0,1},{2,3}}`, or `{}` for one group of all devices;
* `[2,4]<=[8]` and `[4,2]<=[2,4]T(1,0)`: the numbers from 0 as an array, transposed and reshaped,
  whose rows are the groups;
* `mesh['a'=2,'b'=4] {'b'}`: devices that differ only in their place along some axes of a mesh;
  `'b':(2)2` is a part of an axis, of size 2, with 2 parts before it;
* such a mesh with `device_ids=([2,4]T(1,0))`, its devices in order.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from jaxsight.hlo.shapes import dims
from jaxsight.wire.meshes import Mesh

Groups = tuple[tuple[int, ...], ...]

_LISTS = re.compile(r"\{([\d,\s]*)\}")
_LISTED = re.compile(r"\{(?:\s*\{[\d,\s]*\}\s*,?\s*)*\}")
_SHAPED = re.compile(r"\[([\d,]+)\]<=")
_AXES = re.compile(r"mesh\[([^\]]*)\](?:,\s*device_ids=\(([^)]*(?:\([\d,]*\))?)\))?\s*\{([^}]*)\}")
_SIZED = re.compile(r"'([^']*)'=(\d+)")
_NAMED = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")
_IDS = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")


def parse(text: str, devices: int) -> Groups:
    """Return the groups in a text that begins with them; empty if they are not understood.

    Args:
        text: the attribute, with or without what follows it.
        devices: the number of devices of the program, for one group of all.
    """
    if (mesh := _AXES.match(text)) is not None:
        return _of_axes(mesh[1], mesh[2] or "", mesh[3])
    if (shaped := _SHAPED.match(text)) is not None:
        rows, *widths = dims(shaped[1])
        return _rows(device_ids(text[shaped.end() :]), math.prod(widths) if widths else rows)
    if _LISTED.match(text) is not None:
        everyone = (tuple(range(devices)),) if devices else ()
        return pairs(text) or everyone
    return ()


def pairs(text: str) -> Groups:
    """Return the lists in a text that begins with them, such as pairs of source and target."""
    listed = _LISTED.match(text)
    return tuple(dims(inner) for inner in _LISTS.findall(listed[0][1:-1])) if listed else ()


def transposed(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers from 0 as an array of some sizes, transposed, in order.

    Args:
        order: the old dimension of each new one; empty if it is not transposed.
    """
    if not order:
        return tuple(range(math.prod(sizes)))
    strides = [math.prod(sizes[dimension + 1 :]) for dimension in range(len(sizes))]
    ranges = [range(0, sizes[old] * strides[old], strides[old]) for old in order]
    return tuple(sum(place) for place in itertools.product(*ranges))


def axes_of(groups: Groups, meshes: Iterable[Mesh], *, pairs: bool = False) -> tuple[str, ...]:
    """Return the axes that devices communicate over, of the first mesh for which there are some.

    Args:
        groups: groups of devices, or pairs of source and target.
        meshes: the meshes of the program.
        pairs: whether the groups are pairs; their axes are those that any pair differs in.
    """
    of = _axes_of_pairs if pairs else _axes_of_groups
    return next(filter(None, (of(groups, mesh) for mesh in meshes)), ())


@lru_cache(maxsize=1024)  # the groups of some programs, as below
def _axes_of_groups(groups: Groups, mesh: Mesh) -> tuple[str, ...]:
    devices = mesh.devices or tuple(range(mesh.size))
    group = next((group for group in groups if len(group) > 1), ())
    place_of = coordinates(mesh)
    if not set(group) <= place_of.keys():
        return ()
    along = _differing(mesh, [place_of[device] for device in group])
    expected: dict[tuple[int, ...], set[int]] = {}
    for device in devices:
        rest = tuple(at for axis, at in enumerate(place_of[device]) if axis not in along)
        expected.setdefault(rest, set()).add(device)
    if {frozenset(group) for group in groups} != set(map(frozenset, expected.values())):
        return ()
    return tuple(mesh.axes[axis][0] for axis in along)


@lru_cache(maxsize=1024)
def _axes_of_pairs(groups: Groups, mesh: Mesh) -> tuple[str, ...]:
    place_of = coordinates(mesh)
    if not {device for pair in groups for device in pair} <= place_of.keys():
        return ()
    along = {
        axis
        for source, target in groups
        for axis in _differing(mesh, [place_of[source], place_of[target]])
    }
    return tuple(name for axis, (name, _) in enumerate(mesh.axes) if axis in along)


def _differing(mesh: Mesh, places: list[tuple[int, ...]]) -> list[int]:
    """Return the axes along which some places are not the same."""
    return [axis for axis in range(len(mesh.axes)) if len({place[axis] for place in places}) > 1]


@lru_cache(maxsize=64)  # a program has one or two; those of others are computed again
def coordinates(mesh: Mesh) -> dict[int, tuple[int, ...]]:
    """Return the place of each device along the axes of a mesh."""
    in_order = itertools.product(*(range(size) for _, size in mesh.axes))
    return dict(zip(mesh.devices or range(mesh.size), in_order, strict=False))


def _of_axes(axes: str, ids: str, names: str) -> Groups:
    """Return the groups along some axes, or parts of axes, of a mesh in the HLO."""
    sizes = [(name, int(size)) for name, size in _SIZED.findall(axes)]
    devices = device_ids(ids) or tuple(range(math.prod(size for _, size in sizes)))
    along: list[int] = []
    split: list[int] = []
    wanted = {
        name: (int(before or 1), int(width or 0)) for name, before, width in _NAMED.findall(names)
    }
    for name, size in sizes:
        if name not in wanted:
            split.append(size)
            continue
        before, width = wanted[name]
        width = width or size
        along.append(len(split) + 1)
        split += [before, width, size // (before * width)]
    rest = [axis for axis in range(len(split)) if axis not in along]
    order = transposed(split, [*rest, *along])
    if len(order) != len(devices):
        return ()
    return _rows(tuple(devices[at] for at in order), math.prod(split[axis] for axis in along))


def device_ids(text: str) -> tuple[int, ...]:
    """Return the devices that a text begins with: a list, or an array such as `[2,4]T(1,0)`."""
    if (iota := _IDS.match(text)) is not None:
        return transposed(dims(iota[1]), dims(iota[2] or ""))
    return dims(text)


def _rows(numbers: tuple[int, ...], width: int) -> Groups:
    return tuple(numbers[at : at + width] for at in range(0, len(numbers), max(1, width)))
