"""Read sizes and shapes: numbers, names, arithmetic on them, and the mesh axes of dimensions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from jaxsight.examples.notation.tokens import DEEPEST, ChunkText, TokenReader
from jaxsight.examples.notation.values import (
    BY_NAME,
    Arithmetic,
    Axis,
    Division,
    NamedSize,
    Node,
    Number,
    Operator,
    Size,
    arrays_of,
    names_in,
    show_size,
)
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
from jaxsight.text.inert import clause
from jaxsight.wire.meshes import AUTO, EXPLICIT, MANUAL, Mesh

# Named sizes: their values from `where` and the settings, and the values of shapes.

LARGEST = 2**63 - 1
"""The largest size that XLA can represent: a dimension is an `int64` (`xla/shape.h`)."""
_OPERATIONS: Mapping[Operator, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes `defined` by `where` lines, and those `configured` in the settings, which rank lower.

    A definition may refer to other sizes.
    """

    defined: Mapping[str, Size]
    configured: Mapping[str, int]

    def value(self, size: Size) -> int:
        """Return the value of a size; raise `Malformed` at an undefined name or invalid value."""
        return self._value(size, ())

    def knows(self, name: str) -> bool:
        """Return whether a size has a value."""
        return name in self.defined or name in self.configured

    def used(self, size: Size) -> frozenset[str]:
        """Return the names that a size depends on, directly or by their definitions."""
        names: set[str] = set()
        waiting = list(names_in(size))
        while waiting:
            if (name := waiting.pop()) not in names:
                names.add(name)
                if name in self.defined:
                    waiting.extend(names_in(self.defined[name]))
        return frozenset(names)

    def _value(self, size: Size, inside: tuple[str, ...]) -> int:
        match size:
            case Number(value):
                return value
            case NamedSize(name, range):
                if name in inside:
                    # With the words before it, less than `wording.MOST`.
                    circle = clause(" → ".join((*inside[inside.index(name) :], name)), 60)
                    raise malformed(range, f"circular size definition: {circle}", code=CONFLICT)
                if name in self.defined:
                    return self._value(self.defined[name], (*inside, name))
                if name in self.configured:
                    return self.configured[name]
                known = (*self.defined, *self.configured)
                help = did_you_mean(name, known, f"add `where {name}=…`")
                raise malformed(range, f"undefined size {quoted(name)}", help, UNKNOWN_SIZE)
            case Arithmetic(sign, left, right, range):
                first, second = self._value(left, inside), self._value(right, inside)
                shown = quoted(show_size(size))
                if sign in ("//", "%") and second == 0:
                    raise malformed(range, f"division by zero in {shown}", code=UNKNOWN_SIZE)
                if (value := _OPERATIONS[sign](first, second)) < 0:
                    message = f"size {shown} is negative ({value})"
                    raise malformed(range, message, code=UNKNOWN_SIZE)
                if value > LARGEST:
                    message = f"size {shown} exceeds {LARGEST:,}"
                    raise malformed(range, message, code=UNKNOWN_SIZE)
                return value


_OPERATORS: dict[str, Operator] = {"+": "+", "-": "-", "*": "*", "//": "//", "%": "%"}


_AXIS_HELP = "write a mesh axis: `8@data`, or `8@(data,model)` for several"


def read_shape(reader: TokenReader) -> tuple[tuple[Size, ...], Division]:
    """Return the sizes between `[` and `]`, and the mesh axes that they are divided over."""
    opening = reader.take("[")
    sizes: list[Size] = []
    division: list[tuple[Axis, ...]] = []
    for _ in reader.items(opening, "]"):
        sizes.append(read_size(reader))
        division.append(_read_axes(reader, division) if reader.token.is_("@") else ())
    return tuple(sizes), tuple(division) if any(division) else ()


def _read_axes(reader: TokenReader, before: list[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """Return the mesh axes after `@`: a name, or several in parentheses."""
    reader.advance()
    used = {axis.name for axes in before for axis in axes}
    if not reader.token.is_("("):
        return (_read_axis(reader, used),)
    opening = reader.advance()
    return tuple(_read_axis(reader, used) for _ in reader.items(opening, ")"))


def _read_axis(reader: TokenReader, used: set[str]) -> Axis:
    token = reader.token
    if token.kind != "name":
        raise reader.expected("a mesh axis", help=_AXIS_HELP)
    if token.text in used:
        raise reader.fail(
            f"mesh axis {quoted(token.text)} is used twice in a shape",
            code=CONFLICT,
            help="an array can be divided only once over an axis: remove one of them",
        )
    used.add(token.text)
    reader.advance()
    return Axis(token.text, reader.token_range(token))


def read_size(reader: TokenReader) -> Size:
    """Return a size: a number, a name, or arithmetic on them."""
    return _Arithmetic(reader).sum()


class _Arithmetic:
    """A parser of one size; it limits the operations, because a long size exhausts the stack."""

    def __init__(self, reader: TokenReader) -> None:
        self.reader = reader
        self._operations = 0

    def sum(self) -> Size:
        start = self.reader.token.start
        size = self._product()
        while self.reader.token.is_("+", "-"):
            size = self._arithmetic(start, size, self._product)
        return size

    def _product(self) -> Size:
        start = self.reader.token.start
        size = self._factor()
        while self.reader.token.is_("*", "//", "%"):
            size = self._arithmetic(start, size, self._factor)
        if self.reader.token.is_("/", "**"):
            operator = self.reader.token.text
            raise self.reader.fail(
                f"sizes do not support `{operator}`",
                help="use `//` for integer division"
                if operator == "/"
                else "use `+`, `-`, `*`, `//` or `%`",
            )
        return size

    def _arithmetic(self, start: int, size: Size, operand: Callable[[], Size]) -> Size:
        operator = _OPERATORS[self.reader.advance().text]
        self._operate()
        return Arithmetic(operator, size, operand(), self.reader.range_from(start))

    def _operate(self) -> None:
        self._operations += 1
        if self._operations > DEEPEST:
            raise self.reader.fail(f"size with more than {DEEPEST} operations")

    def _factor(self) -> Size:
        token = self.reader.token
        match token.kind:
            case "number":
                self.reader.advance()
                try:
                    value = int(token.text, 0)
                except ValueError as error:
                    message = f"size {quoted(token.text)} is not a whole number"
                    raise self.reader.fail(message, token) from error
                if value > LARGEST:
                    raise self.reader.fail(f"size exceeds {LARGEST:,}", token, UNKNOWN_SIZE)
                return Number(value, self.reader.token_range(token))
            case "name":
                self.reader.advance()
                return NamedSize(token.text, self.reader.token_range(token))
            case "operator" if token.text == "(":
                self.reader.advance()
                self._operate()
                inner = self.sum()
                self.reader.check_closed(token, ")")
                self.reader.take(")")
                return inner
            case "operator" if token.text == "-":
                raise self.reader.fail("size is negative")
            case "operator" if token.text in ("...", ":", "?"):
                raise self.reader.fail(
                    f"`{token.text}` is not a valid size", help="use a number or a name"
                )
        raise self.reader.expected("a size", help="use a number or a name")


# The mesh of example inputs: `mesh: data=2, model=4`, and what arrays may be divided over.
#
# A type after an axis (`data=2 explicit`) also applies to the axes before it that have none, as in
# `q, k: f32[8]` an example applies to all names before it. Axes without a type are automatic.
# Manual axes are not declared: `jax.shard_map` makes axes manual.

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
        axis = _read_mesh_axis(reader)
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


def _read_mesh_axis(reader: TokenReader) -> AxisSize:
    name = reader.token
    if name.kind != "name":
        raise reader.expected("a mesh axis", help=_HELP)
    reader.advance()
    named = quoted(name.text)
    help = f"write `{name.text}=2` for an axis, or `mesh = {name.text}` for a mesh of the module"
    reader.take("=", f"`=` after the mesh axis {named}", help=help)
    return AxisSize(name.text, read_size(reader), range=reader.token_range(name))


def _read_type(reader: TokenReader) -> str:
    if (word := reader.token.text) == MANUAL:
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
        if (size := value_of(axis.size)) < 1:
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
