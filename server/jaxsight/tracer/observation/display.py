"""Format values for users: avals like in jaxprs, pytrees like in Python.

`Linear(weight=f32[3,4], bias=f32[3])`, `{'w': f32[8], 'n': 3}`.
The work is bounded: parts that would not fit are not visited.
This must never run an operation on an array, nor keep a reference to a value. The parts of
containers, pytrees and modules are found without running code of the user's classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.states import modules
from jaxsight_source.compat import avals

_LEAVES = 12
"""Maximum number of leaves of a tree in a hint or hover of a value, chosen to fit on a line."""

_TEXT = 60
"""Maximum length of the `repr` of a plain value."""

Part = tuple[object, object]
"""A key and a part: an attribute is an `AttributeName`, an item has its key, other parts `None`."""


@dataclasses.dataclass(frozen=True, slots=True)
class TextLeaf:
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
    fields = [(each, own.get(each.name)) for each in dataclasses.fields(value)]
    plain = [(each, part) for each, part in fields if type(part) in (bool, int, float, str)]
    changed = ((each.name, part) for each, part in plain if part is not each.default)
    settings = ", ".join(f"{name}={_plain(part)}" for name, part in changed)
    return f"{type(value).__name__}({settings})"


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
        elif value is None or isinstance(value, TextLeaf):
            yield "None" if value is None else value.text
            return
        elif isinstance(value, bool | int | float | complex):
            self.numbers += 1
            yield _plain(value)
        else:
            is_text = isinstance(value, str | bytes)
            contents = None if is_text or self._depth == _DEEPEST else parts_of(value)
            if contents is not None:
                yield from self._node(value, contents)
                return
            self.opaque += 1
            yield _plain(value) if is_text else _opaque(value)
        self._remaining -= 1

    def _node(self, value: object, contents: Parts) -> Iterator[str]:
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
    return f"{key}=" if isinstance(key, AttributeName) else f"{_plain(key)}: "


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


class AttributeName(str):
    """The name of an attribute."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a value of class `name`; lists, tuples and dictionaries have no name.

    `brackets` are those of its text, without the name: `()`, `[]`, `{}`.
    """

    name: str
    brackets: str
    parts: Iterator[Part]


def parts_of(value: object) -> Parts | None:
    """Return the parts of a container, or `None` for other values."""
    cls = type(value)
    match value:
        case tuple():
            fields = getattr(cls, "_fields", None)
            if isinstance(fields, tuple):
                return Parts(cls.__name__, "()", _attributes(zip(fields, value, strict=False)))
            return Parts("", "()", ((None, part) for part in value))
        case list():
            return Parts("", "[]", ((None, part) for part in value))
        case type():
            return None
        case Mapping():
            items = ((key, value[key]) for key in value)
            if modules.is_of(cls, "flax.nnx") and cls.__name__ in ("State", "Dict"):
                return Parts(cls.__name__, "()", _attributes(items))
            return Parts("" if cls is dict else cls.__name__, "{}", items)
        case _ if modules.is_of(cls, "flax.nnx"):
            return _of_nnx(value)
        case _ if (bound := modules.bound_variables(value)) is not None:
            return Parts(cls.__name__, "()", _attributes(bound.items()))
        case _ if dataclasses.is_dataclass(value):
            names = (field.name for field in dataclasses.fields(value))
            pairs = ((name, getattr(value, name, None)) for name in names)
            return Parts(cls.__name__, "()", _attributes(pairs))
        case _ if is_node(value):
            own = getattr(value, "__name__", None)  # a function that captures arrays
            return Parts(own if isinstance(own, str) else cls.__name__, "()", _registered(value))
        case _:
            return None


def _of_nnx(value: object) -> Parts | None:
    cls = type(value)
    if cls.__name__ == "GraphDef" or not is_node(value):
        return None
    if modules.is_variable(value):
        return Parts(cls.__name__, "()", ((None, part) for _, part in _registered(value)))
    data = ((name, part) for name, part in modules.attributes(value).items() if _is_data(part))
    if cls.__name__ == "List":
        items = sorted((int(name), part) for name, part in data if name.isdecimal())
        return Parts(cls.__name__, "[]", ((None, part) for _, part in items))
    if not modules.attributes(value):
        return Parts(cls.__name__, "()", _registered(value))
    return Parts(cls.__name__, "()", ((AttributeName(name), part) for name, part in data))


def _is_data(part: object) -> bool:
    """Return whether an attribute of an NNX object is an array, or may hold arrays."""
    if isinstance(part, tuple | list | dict):
        leaves = jax.tree_util.tree_leaves(part, is_leaf=_is_whole)
        return any(hasattr(leaf, "dtype") or modules.is_variable(leaf) for leaf in leaves)
    return hasattr(type(part), "dtype") or is_node(part)


def _is_whole(part: object) -> bool:
    return modules.is_variable(part) or is_flattened_by_user(type(part))


def _attributes(parts: Iterable[tuple[object, object]]) -> Iterator[Part]:
    for key, part in parts:
        yield AttributeName(key) if isinstance(key, str) and key.isidentifier() else key, part


def is_node(value: object) -> bool:
    """Return whether JAX flattens values of this class."""
    return not jax.tree_util.all_leaves([value])


def _registered(value: object) -> Iterator[Part]:
    if is_flattened_by_user(type(value)):
        # Calling user code now could add equations to the current trace.
        for attribute, part in list(getattr(value, "__dict__", {}).items()):
            yield AttributeName(attribute), part
        return
    # One level only: parts are described themselves.
    pairs, _ = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda part: part is not value)
    for path, part in pairs:
        name = getattr(path[0], "name", None) if path else None
        if isinstance(name, str) and name.startswith(modules.BOOKKEEPING):
            continue
        yield AttributeName(name) if isinstance(name, str) else None, part


def flattened(value: object) -> tuple[list[object], jax.tree_util.PyTreeDef]:
    """Return the leaves and the structure of a value, without calling user code.

    A value that user code flattens is a leaf: that code may add equations to the current trace.
    """
    return jax.tree_util.tree_flatten(value, is_leaf=lambda part: is_flattened_by_user(type(part)))


def is_flattened_by_user(kind: type) -> bool:
    """Return whether JAX calls the user's code to flatten values of a class."""
    code = getattr(registrations.flattening(kind), "__code__", None)
    file = code.co_filename if isinstance(code, CodeType) else None
    return file is not None and code_origins.of_file(file) == code_origins.USER
