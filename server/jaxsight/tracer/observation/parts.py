"""The parts of containers, pytrees and modules, without running code of the user's classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType

import jax

from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.states import modules

Part = tuple[object, object]
"""A key and a part: an attribute is an `AttributeName`, an item has its key, other parts `None`."""


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


def of(value: object) -> Parts | None:
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
        return any(
            hasattr(leaf, "dtype") or modules.is_variable(leaf)
            for leaf in jax.tree_util.tree_leaves(part, is_leaf=_is_whole)
        )
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
    return (
        isinstance(code, CodeType) and code_origins.of_file(code.co_filename) == code_origins.USER
    )
