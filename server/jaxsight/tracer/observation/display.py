"""Format values for users: avals like in jaxprs, pytrees like in Python.

`Linear(weight=f32[3,4], bias=f32[3])`, `{'w': f32[8], 'n': 3}`.
The work is bounded: parts that would not fit are not visited.
This must never run an operation on an array, nor keep a reference to a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.observation import parts
from jaxsight.tracer.states import modules
from jaxsight_source.compat import avals

_LEAVES = 12
"""Maximum number of leaves of a tree in a hint or hover of a value, chosen to fit on a line."""

_TEXT = 60
"""Maximum length of the `repr` of a plain value."""


@dataclasses.dataclass(frozen=True, slots=True)
class KnownText:
    """A placeholder in a tree for a leaf whose text is known already."""

    text: str


def text(value: object, leaves: int = _LEAVES) -> str:
    """Format a value, eliding everything past `leaves` leaves as `…`."""
    return Display(value, leaves).text


def without_arrays(value: object) -> str | None:
    """Return the text of a graph of NNX, or of a Linen module without variables; else `None`.

    A module has those of its fields that are not the default.
    """
    if modules.graph_root(value) is not None:
        return _opaque(value)
    if modules.kind(type(value)) != modules.NAMED or not dataclasses.is_dataclass(value):
        return None
    own = modules.attributes(value)
    settings = [
        f"{field.name}={_plain(own[field.name])}"
        for field in dataclasses.fields(value)
        if type(own.get(field.name)) in (bool, int, float, str)
        and own[field.name] is not field.default
    ]
    return f"{type(value).__name__}({', '.join(settings)})"


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


class Display:
    """The text of a value.

    `arrays` counts its array leaves, `opaque` the leaves that are neither arrays nor numbers.
    """

    def __init__(self, value: object, leaves: int = _LEAVES) -> None:
        self.arrays = self.opaque = self.numbers = 0
        self._remaining = leaves
        self._depth = 0
        self.text = "".join(self._written(value))

    def _written(self, value: object) -> Iterator[str]:
        """Yield the text of a value in pieces."""
        if (array_text := array(value)) is not None:
            self.arrays += 1
            yield array_text
        elif value is None or isinstance(value, KnownText):
            yield "None" if value is None else value.text
            return
        elif isinstance(value, bool | int | float | complex):
            self.numbers += 1
            yield _plain(value)
        else:
            is_text = isinstance(value, str | bytes)
            contents = None if is_text or self._depth == _DEEPEST else parts.of(value)
            if contents is not None:
                yield from self._node(value, contents)
                return
            self.opaque += 1
            yield _plain(value) if is_text else _opaque(value)
        self._remaining -= 1

    def _node(self, value: object, contents: parts.Parts) -> Iterator[str]:
        around = "()" if contents.name and contents.brackets != "()" else ""
        yield f"{contents.name}{around[:1]}{contents.brackets[0]}"
        self._depth += 1
        for index, (key, child) in enumerate(contents.parts):
            if index:
                yield ", "
            if self._remaining <= 0:
                yield "…"
                break
            yield _label(key)
            yield from self._written(child)
        self._depth -= 1
        # A tuple of one; classes take it without a comma.
        yield "," if type(value) is tuple and len(value) == 1 else ""
        yield f"{contents.brackets[1]}{around[1:]}"


_DEEPEST = 16  # of a tree, so that a cycle ends


def _label(key: object) -> str:
    """Return the text before a part: `name=` of an attribute, `'key': ` of an item."""
    if key is None:
        return ""
    return f"{key}=" if isinstance(key, parts.AttributeName) else f"{_plain(key)}: "


def _plain(value: object) -> str:
    try:
        shown = repr(value)
    except Exception as error:  # noqa: BLE001 - user code: a subclass's __repr__
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return shown if len(shown) <= _TEXT else shown[: _TEXT - 1] + "…"


def _opaque(value: object) -> str:
    """Return the text of other values: the name of a function or class, else that of the class."""
    if (root := modules.graph_root(value)) is not None:
        return f"{type(value).__name__}({root})"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else f"<{type(value).__name__}>"
