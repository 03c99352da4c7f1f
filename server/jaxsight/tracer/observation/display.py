"""Format values for users: avals like in jaxprs, pytrees like in Python.

`Linear(weight=f32[3,4], bias=f32[3])`, `{'w': f32[8], 'n': 3}`.
The work is bounded: parts that would not fit are not visited.
This must never run an operation on an array, nor keep a reference to a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

import jax
import numpy as np

from jaxsight.interpreters.compat import avals, shardings
from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation import code_origins

_LEAVES = 12
"""Maximum number of leaves of a tree in a hint or hover of a value."""

_TEXT = 60
"""Maximum length of the `repr` of a plain value."""


@dataclasses.dataclass(slots=True)
class Display:
    """The text of a value.

    `arrays` counts its array leaves, `opaque` the leaves that are neither arrays nor numbers.
    """

    text: str
    arrays: int = 0
    opaque: int = 0
    numbers: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """A placeholder in a tree for a leaf whose text is known already."""

    text: str


def display(value: object, leaves: int = _LEAVES) -> Display:
    """Format a value, eliding everything past `leaves` leaves as `…`."""
    writer = _Writer(leaves)
    parts: list[str] = []
    writer.write(value, parts)
    return Display("".join(parts), writer.arrays, writer.opaque, writer.numbers)


def text(value: object, leaves: int = _LEAVES) -> str:
    return display(value, leaves).text


def array(value: object) -> str | None:
    """Return the text of an array, tracer or abstract array, or `None` for other values.

    Arrays over several devices have their sharding, as in jaxprs: `f32[8@data,16]`. NumPy arrays
    are marked, because JAX copies them.
    """
    match value:
        case jax.core.Tracer() | jax.Array() | jax.ShapeDtypeStruct():
            return shardings.text(value)
        case np.ndarray():
            return avals.array_text(value.dtype, value.shape) + "(numpy)"
        case np.generic():
            return avals.array_text(value.dtype, ()) + "(numpy)"
        case _ if avals.is_aval(value):
            return avals.text(value)
        case _:
            return None


class _Writer:
    def __init__(self, leaves: int) -> None:
        self.remaining = leaves
        self.depth = 0
        self.arrays = 0
        self.opaque = 0
        self.numbers = 0

    def write(self, value: object, out: list[str]) -> None:
        array_text = array(value)
        if array_text is not None:
            self.remaining -= 1
            self.arrays += 1
            out.append(array_text)
            return
        match value:
            case None:
                out.append("None")
            case Shown(shown):
                out.append(shown)
            case bool() | int() | float() | complex():
                self.remaining -= 1
                self.numbers += 1
                out.append(_plain(value))
            case str() | bytes():
                self.remaining -= 1
                self.opaque += 1
                out.append(_plain(value))
            case _:
                self.node(value, out)

    def node(self, value: object, out: list[str]) -> None:
        children = _children(value) if self.depth < _DEEPEST else None
        if children is None:
            self.remaining -= 1
            self.opaque += 1
            out.append(_opaque(value))
            return
        opening, labelled, closing = children
        out.append(opening)
        self.depth += 1
        first = True
        for label, child in labelled:
            if not first:
                out.append(", ")
            if self.remaining <= 0:
                out.append("…")
                break
            out.append(label)
            self.write(child, out)
            first = False
        self.depth -= 1
        out.append(closing)


_DEEPEST = 16

Children = tuple[str, Iterator[tuple[str, object]], str]


def _children(value: object) -> Children | None:
    """Return the opening, the labelled parts and the closing of a container, or `None`."""
    match value:
        case tuple():
            fields = getattr(type(value), "_fields", None)
            if isinstance(fields, tuple):
                pairs = ((f"{name}=", part) for name, part in zip(fields, value, strict=False))
                return f"{type(value).__name__}(", pairs, ")"
            return "(", (("", part) for part in value), ",)" if len(value) == 1 else ")"
        case list():
            return "[", (("", part) for part in value), "]"
        case Mapping():
            opening = "{" if type(value) is dict else f"{type(value).__name__}({{"
            pairs = ((f"{_plain(key)}: ", value[key]) for key in value)
            return opening, pairs, "}" if type(value) is dict else "})"
        case type():
            return None
        case _ if dataclasses.is_dataclass(value):
            shown = (field.name for field in dataclasses.fields(value))
            pairs = ((f"{name}=", getattr(value, name, None)) for name in shown)
            return f"{type(value).__name__}(", pairs, ")"
        case _ if is_node(value):
            return f"{type(value).__name__}(", _registered(value), ")"
        case _:
            return None


def is_node(value: object) -> bool:
    """Return whether JAX flattens values of this class."""
    return not jax.tree_util.all_leaves([value])


_BOOKKEEPING = "_pytree__"
"""Prefix of attributes with internal objects of Flax's NNX."""


def _registered(value: object) -> Iterator[tuple[str, object]]:
    if _is_flattened_by_user(type(value)):
        # Calling user code now could add equations to the current trace.
        attributes: dict[str, object] = getattr(value, "__dict__", {})
        for attribute, part in list(attributes.items()):
            yield f"{attribute}=", part
        return
    pairs, _ = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda part: part is not value)
    for path, part in pairs:
        name = getattr(path[0], "name", None) if path else None
        if isinstance(name, str) and name.startswith(_BOOKKEEPING):
            continue
        yield f"{name}=" if isinstance(name, str) else "", part


def _is_flattened_by_user(kind: type) -> bool:
    code = getattr(registrations.flattening(kind), "__code__", None)
    return (
        isinstance(code, CodeType) and code_origins.of_file(code.co_filename) == code_origins.USER
    )


def _plain(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception as error:  # noqa: BLE001 - user code: a subclass's __repr__
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return shown if len(shown) <= _TEXT else shown[: _TEXT - 1] + "…"


def _opaque(value: object) -> str:
    """Return the text of other values: the name of a function or class, else that of the class."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else f"<{type(value).__name__}>"
