"""The values of example inputs: arrays as in jaxprs, keys, pytrees as Python displays, literals.

Dimensions of arrays may be divided over mesh axes: `f32[8@data, 4]`.

Nodes are plain data with the range that they were read from. The range is ignored in comparisons:
parsing the output of `show` gives an equal node. Nothing here evaluates code; `to_spec` resolves
sizes by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from jaxsight.examples.problems import nearest
from jaxsight.source.text import Position, Range
from jaxsight.text.names import words
from jaxsight.wire.meshes import Spec
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec, ValueSpec

# The dtypes and key implementations that example inputs may name, as in jaxprs and in NumPy.
#
# They are a table, so that the server needs neither JAX nor NumPy to read one.

DTYPES = words(
    """
    float32 bfloat16 float16 float64 int32 int64 int16 int8 int4 int2 int1 uint32 uint64 uint16
    uint8 uint4 uint2 uint1 bool complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e3m4 float8_e8m0fnu float6_e2m3fn
    float6_e3m2fn float4_e2m1fn
    """
)
"""Every dtype that a JAX array can have, by NumPy's (or ml_dtypes') name; the usual ones first."""


def short(dtype: str) -> str:
    """Return the name as jaxprs print it: `f32` for `float32`."""
    for long, brief in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        dtype = dtype.replace(long, brief)
    return dtype


BY_NAME = {name: name for name in DTYPES} | {short(d): d for d in DTYPES}

# Python's own types have no width; their users want JAX's default.
_MEANT = {"float": "f32", "int": "i32", "complex": "c64", "b1": "bool", "pred": "bool"}

KEY_IMPLEMENTATIONS = {
    "fry": "fry",
    "threefry2x32": "fry",
    "rbg": "rbg",
    "urbg": "unsafe_rbg",
    "unsafe_rbg": "unsafe_rbg",
}
"""JAX's tags and names of key implementations, mapped to the name that the tracer takes."""

KEY_TAGS = {"fry": "fry", "rbg": "rbg", "unsafe_rbg": "urbg"}
"""Key implementations as jaxprs print them."""


def suggestion(name: str) -> str | None:
    """Return the short name of the dtype that `name` was probably meant to be."""
    if (meant := _MEANT.get(name)) is not None:
        return meant
    name_meant = nearest(name, BY_NAME)
    return None if name_meant is None else short(BY_NAME[name_meant])


_NOWHERE = Range(Position(0, 0), Position(0, 0))

HOST = "host"
"""The name of the host's memory in types (`f32<host>[8]`)."""

Operator = OneOf["+", "-", "*", "//", "%"]
TreeKind = OneOf["dict", "list", "tuple"]


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NamedSize:
    """A size given by name."""

    name: str
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: Operator
    left: Size
    right: Size
    range: Range = field(default=_NOWHERE, compare=False)


Size = Number | NamedSize | Arithmetic


@dataclass(frozen=True, slots=True)
class Axis:
    """A mesh axis that a dimension is divided over."""

    name: str
    range: Range = field(default=_NOWHERE, compare=False)


Division = tuple[tuple[Axis, ...], ...]
"""The mesh axes of each dimension, major to minor; empty if no dimension is divided."""


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """`f32[4@data, D]`; `dtype` is NumPy's name.

    `weak` is written `~f32[]`, and an array in the memory of the host `f32<host>[8]`, as JAX prints
    them.
    """

    dtype: str
    shape: tuple[Size, ...]
    weak: bool = False
    division: Division = ()
    on_host: bool = False
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Key:
    """`key<fry>[8]`; `implementation` is `fry`, `rbg` or `unsafe_rbg`."""

    implementation: str
    shape: tuple[Size, ...]
    division: Division = ()
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A Python literal, as its source."""

    source: str
    range: Range = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A display; `keys` are the sources of a dict's keys."""

    kind: TreeKind
    children: tuple[Node, ...]
    keys: tuple[str, ...] = ()
    range: Range = field(default=_NOWHERE, compare=False)


Node = ArrayNode | Key | LiteralNode | TreeNode


def show(node: Node) -> str:
    """Return the node as one line of the notation."""
    match node:
        case ArrayNode(dtype, shape, weak, division, on_host):
            memory = f"<{HOST}>" if on_host else ""
            return f"{'~' if weak else ''}{short(dtype)}{memory}[{_shape(shape, division)}]"
        case Key(implementation, shape, division):
            return f"key<{KEY_TAGS[implementation]}>[{_shape(shape, division)}]"
        case LiteralNode(source):
            return source
        case TreeNode("dict", children, keys):
            pairs = zip(keys, children, strict=True)
            return "{" + ", ".join(f"{key}: {show(child)}" for key, child in pairs) + "}"
        case TreeNode("list", children):
            return "[" + ", ".join(map(show, children)) + "]"
        case TreeNode(_, (child,)):
            return f"({show(child)},)"
        case TreeNode(_, children):
            return "(" + ", ".join(map(show, children)) + ")"


def _shape(shape: tuple[Size, ...], division: Division) -> str:
    sizes: list[str] = []
    for size, axes in zip(shape, division or ((),) * len(shape), strict=True):
        names = ",".join(axis.name for axis in axes)
        over = f"@({names})" if len(axes) > 1 else f"@{names}" if axes else ""
        sizes.append(show_size(size) + over)
    return ", ".join(sizes)


def show_size(size: Size) -> str:
    """Return a size as written, with the brackets that it needs."""
    match size:
        case Number(value):
            return str(value)
        case NamedSize(name):
            return name
        case Arithmetic(operator, left, right):
            first = _bracketed(left, _binding(left) < _binding(size))
            second = _bracketed(right, _binding(right) <= _binding(size))
            return f"{first} {operator} {second}"


def _bracketed(size: Size, needed: bool) -> str:
    return f"({show_size(size)})" if needed else show_size(size)


def _binding(size: Size) -> int:
    match size:
        case Arithmetic("+" | "-"):
            return 1
        case Arithmetic():
            return 2
    return 3


def is_literal(node: Node) -> bool:
    """Return whether a node contains no array: such a value is passed as it is."""
    match node:
        case LiteralNode():
            return True
        case TreeNode(_, children):
            return all(map(is_literal, children))
    return False


def arrays_of(node: Node) -> Iterator[ArrayNode | Key]:
    """Yield the arrays and keys in a node."""
    match node:
        case ArrayNode() | Key():
            yield node
        case TreeNode(_, children):
            for child in children:
                yield from arrays_of(child)
        case LiteralNode():
            return


def with_sizes(node: Node, size_of: Callable[[Size], Size]) -> Node:
    """Return a node with other sizes of its arrays."""
    match node:
        case ArrayNode(shape=shape) | Key(shape=shape):
            return replace(node, shape=tuple(map(size_of, shape)))
        case TreeNode(children=children):
            return replace(node, children=tuple(with_sizes(c, size_of) for c in children))
        case LiteralNode():
            return node


def sizes_of(node: Node) -> tuple[Size, ...]:
    """Return every size of every array in a node."""
    return tuple(size for array in arrays_of(node) for size in array.shape)


def axes_of(node: Node) -> tuple[Axis, ...]:
    """Return every mesh axis that a dimension in a node is divided over."""
    return tuple(axis for array in arrays_of(node) for over in array.division for axis in over)


def names_in(size: Size) -> tuple[str, ...]:
    """Return the names in a size."""
    match size:
        case NamedSize(name):
            return (name,)
        case Arithmetic(_, left, right):
            return names_in(left) + names_in(right)
    return ()


def to_spec(node: Node, value_of: Callable[[Size], int]) -> InputSpec:
    """Return the node with all sizes resolved, as the tracer takes it."""
    match node:
        case ArrayNode(dtype, shape, weak, division, on_host):
            return ArraySpec(dtype, tuple(map(value_of, shape)), weak, _spec(division), on_host)
        case Key(implementation, shape, division):
            return KeySpec(implementation, tuple(map(value_of, shape)), _spec(division))
        case _ if is_literal(node):
            return ValueSpec(show(node), literal=True)
        case TreeNode(kind, children, keys):
            return TreeSpec(kind, tuple(to_spec(child, value_of) for child in children), keys)
        case LiteralNode():
            raise AssertionError("a literal is one")


def _spec(division: Division) -> Spec:
    return tuple(tuple(axis.name for axis in axes) for axes in division)
