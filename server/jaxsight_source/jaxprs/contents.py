"""Parts of an object, for comparing two objects whose `==` compares identity.

Such objects are closures, methods, partial functions, pytree definitions and objects of classes
written in Python. The parts include everything that can make the object behave differently; objects
for which that is unknown have no parts.
"""

from __future__ import annotations

import functools
import sys
import types

import jax
import jax.extend.core

_POINTER = 8
"""Bytes that an object has for each slot of its class: a pointer of a 64-bit CPython."""

_LOOKUPS = {"__getattribute__", "__getattr__"}
"""Methods of a class that looks up attributes in its own way."""

_KNOWN_BY_IDENTITY = (type, jax.core.Tracer, jax.extend.core.Primitive)
"""Classes whose behaviour may be registered elsewhere, outside the object."""


def contents(value: object) -> tuple[object, ...] | None:
    """Return the parts of an object.

    Return None for an object that may have state which cannot be read, or that has none but its
    identity.
    """
    match value:
        case types.FunctionType():
            cells = tuple(cell_contents(cell) for cell in value.__closure__ or ())
            return (
                Identity(value.__code__),
                Identity(value.__globals__),
                value.__defaults__,
                value.__kwdefaults__,
                vars(value),
                cells,
            )
        case types.MethodType():
            return (value.__func__, value.__self__)
        case functools.partial():
            return (value.func, value.args, value.keywords, vars(value))
        case jax.tree_util.PyTreeDef():
            return (value.num_leaves, value.node_data(), value.children())
        case _:
            return _attributes(value)


def cell_contents(cell: types.CellType) -> object:
    """Return what a variable of a closure holds; `NOTHING` if it is not set."""
    try:
        return cell.cell_contents
    except ValueError:
        return NOTHING


class Identity:
    """A part that must be the very same object."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


NOTHING = Identity(None)
"""The contents of a cell, or of a slot, that is not set."""


def _attributes(value: object) -> tuple[object, ...] | None:
    cls = type(value)
    if isinstance(value, _KNOWN_BY_IDENTITY) or not all(
        _is_transparent(base) for base in cls.__mro__
    ):
        return None
    slots = [name for base in cls.__mro__ for name in _slots(base)]
    attributes = dict(getattr(value, "__dict__", {}))
    if not slots and not attributes and not any(map(_is_equinox_module, cls.__mro__)):
        return None  # a sentinel, which is compared by identity
    return (attributes, *(getattr(value, name, NOTHING) for name in slots))


def _is_transparent(base: type) -> bool:
    """Return whether a class adds no state but attributes.

    Such a class is written in Python and looks up attributes in the usual way.
    """
    if base is object:
        return True
    bookkeeping = sum(name in vars(base) for name in ("__dict__", "__weakref__"))
    size = base.__basicsize__ - (base.__base__ or object).__basicsize__
    return (
        size <= _POINTER * (len(_slots(base)) + bookkeeping)
        and base.__base__ is not None
        and (_is_equinox_module(base) or not _LOOKUPS & vars(base).keys())
    )


def _is_equinox_module(base: type) -> bool:
    """Return whether a class is `equinox.Module`.

    Its `__getattribute__` only wraps bound methods (equinox 0.13).
    """
    return base is getattr(sys.modules.get("equinox"), "Module", None)


def _slots(base: type) -> list[str]:
    """Return the names of the attributes for which a class itself has slots."""
    attributes = vars(base).items()
    return [name for name, value in attributes if isinstance(value, types.MemberDescriptorType)]
