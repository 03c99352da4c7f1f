"""The mesh of example inputs: `mesh: data=2, model=4`, and what arrays may be divided over.

A type after an axis (`data=2 explicit`) also applies to the axes before it that have none, as in
`q, k: f32[8]` an example applies to all names before it. Axes without a type are automatic.
Manual axes are not declared: `jax.shard_map` makes axes manual.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.examples.notation.dtypes import BY_NAME
from jaxsight.examples.notation.shapes import Sizes, read_size
from jaxsight.examples.notation.tokens import TokenReader
from jaxsight.examples.notation.values import Node, Number, Size, arrays_of, show_size
from jaxsight.examples.problems import (
    CONFLICT,
    UNKNOWN_SIZE,
    Problem,
    did_you_mean,
    listed,
    malformed,
    problem,
    quoted,
)
from jaxsight.rules import wording
from jaxsight.source.text import Position, Range
from jaxsight.wire.meshes import AUTO, EXPLICIT, MANUAL, Mesh

NAME = "mesh"
"""The name that a line about the mesh begins with."""

TYPES = (EXPLICIT, AUTO)
"""The types of axes that can be declared."""

_HELP = "write axes with their sizes: `mesh: data=2, model=4`"
_TYPE_HELP = "use `explicit` or `auto`"
_NOWHERE = Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True, slots=True)
class AxisSize:
    """An axis of a mesh: its name, its size and its type (`auto` or `explicit`)."""

    name: str
    size: Size
    type: str = AUTO
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MeshAxes:
    """`data=2, model=4 explicit`."""

    axes: tuple[AxisSize, ...]
    range: Range = field(default=_NOWHERE, compare=False)


def begins_mesh(reader: TokenReader) -> bool:
    """Return whether the text after `mesh:` is a list of axes, rather than another example."""
    first, after = reader.token, reader.peek()
    if first.kind == "end":
        return True
    if first.kind != "name" or first.text in ("True", "False", "None"):
        return False
    return after.is_("=") or not (after.is_("[", "(", ".", "<") or first.text in BY_NAME)


def read_mesh(reader: TokenReader) -> MeshAxes:
    """Return the axes up to the end of the text; raise `Malformed` for any other text."""
    start = reader.token.start
    axes: list[AxisSize] = []
    untyped = 0
    while True:
        axis = _read_axis(reader)
        if any(axis.name == earlier.name for earlier in axes):
            message = f"duplicate mesh axis {quoted(axis.name)}"
            raise malformed(axis.range, message, "remove one of them", CONFLICT)
        axes.append(axis)
        if reader.token.kind == "name":
            type = _read_type(reader)
            axes[untyped:] = [replace(axis, type=type) for axis in axes[untyped:]]
            untyped = len(axes)
        if reader.token.kind == "end":
            return MeshAxes(tuple(axes), reader.range_from(start))
        reader.take(",", "`,` or the end of the line")


def _read_axis(reader: TokenReader) -> AxisSize:
    name = reader.token
    if name.kind != "name":
        raise reader.expected("a mesh axis", help=_HELP)
    reader.advance()
    named = quoted(name.text)
    help = f"write `{name.text}=2` for an axis, or `mesh = {name.text}` for a mesh of the module"
    reader.take("=", f"`=` after the mesh axis {named}", help=help)
    return AxisSize(name.text, read_size(reader), range=reader.token_range(name))


def _read_type(reader: TokenReader) -> str:
    word = reader.token.text
    if word == MANUAL:
        raise reader.fail(
            "manual mesh axes cannot be declared",
            help="use `jax.shard_map` in the function, which makes axes manual",
        )
    if word not in TYPES:
        help = did_you_mean(word, TYPES, _TYPE_HELP)
        raise reader.fail(f"unknown type of mesh axes {quoted(word)}", help=help)
    return reader.advance().text


def to_mesh(mesh: MeshAxes, value_of: Callable[[Size], int]) -> Mesh:
    """Return the mesh with all sizes resolved, as the tracer takes it."""
    axes: list[tuple[str, int]] = []
    for axis in mesh.axes:
        size = value_of(axis.size)
        if size < 1:
            message = f"mesh axis {quoted(axis.name)} has size {size}"
            raise malformed(axis.range, message, "use a size of at least 1", UNKNOWN_SIZE)
        axes.append((axis.name, size))
    types = tuple(axis.type for axis in mesh.axes)
    return Mesh(tuple(axes), types if any(type != AUTO for type in types) else ())


def parse_mesh(text: str) -> Mesh:
    """Return the mesh that a whole text declares, with sizes as numbers.

    Raises:
        Malformed: the text is anything else.
    """
    return to_mesh(read_mesh(TokenReader(ChunkText(text))), Sizes({}, {}).value)


def division_problem(node: Node, mesh: Mesh, value_of: Callable[[Size], int]) -> Problem | None:
    """Return the first axis of a node that the mesh lacks, or that does not divide its dimension.

    All sizes of the node have values.
    """
    sizes = dict(mesh.axes)
    for array in arrays_of(node):
        for size, axes in zip(array.shape, array.division, strict=False):
            for axis in axes:
                if axis.name not in sizes:
                    message = f"unknown mesh axis {quoted(axis.name)}"
                    help = did_you_mean(
                        axis.name, sizes, f"use an axis of the mesh: {listed(sizes)}"
                    )
                    return problem(UNKNOWN_SIZE, axis.range, message, help)
            count = math.prod(sizes[axis.name] for axis in axes)
            if value_of(size) % count:
                value = value_of(size)
                over = f"mesh ax{'es' if len(axes) > 1 else 'is'} {listed(a.name for a in axes)}"
                is_number = isinstance(size, Number)
                shown = str(value) if is_number else f"{quoted(show_size(size))} ({value})"
                message = f"size {shown} is not divisible by {over} of size {count}"
                if len(message) > wording.MOST:
                    message = f"size {shown} is not divisible by {count}"
                return problem(CONFLICT, size.range, message, f"use a multiple of {count}")
    return None
