"""How values are divided over devices: their types, and the meshes that they are divided over."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from typing import TypeVar

from jaxsight.figures.figures import AnyFigures
from jaxsight.meshes.divided import divided_type
from jaxsight.wire.meshes import Chosen, Mesh, Sharding, Spec

_SIZES = re.compile(r"\[([^\[\]]*)\]")
_SIZE = re.compile(r"(?:^|,)(\d+)(?:@(?:\([^()]*\)|\w+))?")


def sharded_type(chosen: Chosen) -> str:
    """Return a global type with its axes as jaxprs write them: `bf16[1024@data,4096]`."""
    unreduced = f"{{U:{','.join(chosen.unreduced)}}}" if chosen.unreduced else ""
    return f"{divided_type(chosen.type, chosen.spec)}{unreduced}"


def of_single_results(figures: AnyFigures) -> dict[str, Chosen]:
    """Return the shardings of the results of equations that have a single one, by path.

    An equation with several results, such as a scan, is no single operation.
    """
    results: defaultdict[str, list[Chosen]] = defaultdict(list)
    for chosen in figures.compiled.shardings:
        results[chosen.equation].append(chosen)
    return {path: known[0] for path, known in results.items() if len(known) == 1}


def mesh_of(figures: AnyFigures, chosen: Chosen) -> Mesh | None:
    """Return the mesh of the axes of a sharding; `None` if several of the program have them."""
    names = {name for axes in chosen.spec for name in axes} | set(chosen.unreduced)
    fitting = [mesh for mesh in figures.meshes if names <= {name for name, _ in mesh.axes}]
    return fitting[0] if len({mesh.axes for mesh in fitting}) == 1 else None


def local_type(type: str, sharding: Sharding) -> str:
    """Return the type on one device of a global type, with axes of a mesh (`@data`) or without."""
    if (match := _SIZES.search(type)) is None:
        return type
    shape = tuple(int(size) for size in _SIZE.findall(match[1]))
    local = sharding.local_shape(shape) if len(shape) == len(sharding.spec) else shape
    return f"{type[: match.start()]}[{','.join(map(str, local))}]"


def partitioner(figures: AnyFigures) -> str:
    """Return the name of the partitioner of a program."""
    distribution = figures.lowered.request.distribution
    return "Shardy" if distribution is None or distribution.is_shardy else "GSPMD"


# How an array is laid out over devices: a grid of its parts, and a picture of it as text.


_Item = TypeVar("_Item")

_ROWS, _COLUMNS = 5, 8
"""Parts that a picture shows in each direction, a choice: it has to fit a hover."""
_NAMED = 4
"""Devices that a part names, a choice: of parts that are replicated, others are counted."""


Layout = tuple[tuple[tuple[int, ...], ...], ...]
"""The parts of an array over two of its dimensions: for each row, for each column, the devices that
have it, in ascending order. A vector has columns only."""


def layout(mesh: Mesh, spec: Spec) -> Layout | None:
    """Return the layout of an array with a dimension for each entry of a spec.

    Returns `None` for scalars, for arrays that more than two dimensions are divided of, and for
    axes that the mesh does not have.
    """
    divided = [index for index, axes in enumerate(spec) if axes]
    names = [name for name, _ in mesh.axes]
    if not spec or len(divided) > 2 or any(n not in names for axes in spec for n in axes):
        return None
    others = [index for index in range(len(spec)) if index not in divided]
    shown = tuple(sorted([*divided, *others[: max(0, min(2, len(spec)) - len(divided))]]))
    sizes = dict(mesh.axes)
    counts = [1, *(math.prod(sizes[axis] for axis in spec[index]) for index in shown)][-2:]
    cells: list[list[list[int]]] = [[[] for _ in range(counts[1])] for _ in range(counts[0])]
    for number, position in enumerate(itertools.product(*(range(size) for _, size in mesh.axes))):
        at = dict(zip(names, position, strict=True))
        parts = [0]
        for index in shown:  # the first axis of a dimension is the major one
            part = 0
            for axis in spec[index]:
                part = part * sizes[axis] + at[axis]
            parts.append(part)
        parts = parts[-2:]
        cells[parts[0]][parts[1]].append(mesh.devices[number] if mesh.devices else number)
    return tuple(tuple(tuple(sorted(cell)) for cell in row) for row in cells)


def picture(shown: Layout) -> str:
    """Return a layout as a table of box characters, at most 12 lines high."""
    hidden: tuple[tuple[int, ...] | None, ...] = (None,) * len(shown[0])
    some = [row if row is not None else hidden for row in _some(shown, _ROWS)]
    rows = [[_devices(cell) for cell in _some(row, _COLUMNS)] for row in some]
    width = max(len(text) for row in rows for text in row) + 2
    lines = ["│".join(["", *(text.center(width) for text in row), ""]) for row in rows]
    bars = ["─" * width] * len(rows[0])
    between = f"├{'┼'.join(bars)}┤"
    body = [lines[0], *itertools.chain.from_iterable((between, line) for line in lines[1:])]
    return "\n".join([f"┌{'┬'.join(bars)}┐", *body, f"└{'┴'.join(bars)}┘"])


def _some(items: tuple[_Item, ...], most: int) -> list[_Item | None]:
    """Return items, with `None` in place of the middle of a long sequence."""
    if len(items) <= most:
        return list(items)
    return [*items[: most - 2], None, items[-1]]


def _devices(cell: tuple[int, ...] | None) -> str:
    if cell is None:
        return "⋯"
    if len(cell) > 2 and cell[-1] - cell[0] == len(cell) - 1:
        return f"{cell[0]}–{cell[-1]}"
    if len(cell) > _NAMED:
        return f"{', '.join(map(str, cell[: _NAMED - 1]))}, …"
    return ", ".join(map(str, cell))
