"""Record the contents of modules' objects, to detect changes by running code.

This follows containers, functions, classes and instances from the modules' names, except objects of
installed packages.
It runs no user code, whatever the user's classes define.
Modules with too many objects count as changed.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation.mutable_contents import SLOTS

_MOST_OBJECTS = 4000
"""Objects that are compared, before each request; modules with more start over each time."""

_PLAIN = (
    *(bool, int, float, complex, str, bytes, type(None), range, slice, types.ModuleType),
    *(types.BuiltinFunctionType, types.MethodDescriptorType, type(Ellipsis), types.CodeType),
)

State = tuple[object, ...]


class ObjectSnapshot:
    """The contents of all objects reachable from the namespaces, by identity."""

    def __init__(self, namespaces: Iterable[Mapping[str, object]], own: AbstractSet[str]) -> None:
        """Record the contents; `own` are the modules whose classes and functions are followed."""
        self._own = own
        self._states: list[tuple[object, State]] = []
        self._complete = True
        # Each namespace has it as `__builtins__`; its changes are a part of `process_state`.
        visited = {id(vars(builtins))}
        todo: deque[object] = deque(namespaces)
        while todo:
            value = todo.popleft()
            if id(value) in visited or isinstance(value, _PLAIN):
                continue
            visited.add(id(value))
            if not self._is_looked_into(value):
                continue
            if len(self._states) >= _MOST_OBJECTS:
                self._complete = False
                break
            state = contents_of(value)
            self._states.append((value, state))
            todo.extend(state)

    def is_current(self) -> bool:
        """Return whether nothing has changed."""
        return self._complete and all(
            _same(state, contents_of(value)) for value, state in self._states
        )

    def _is_looked_into(self, value: Any) -> bool:
        kind = type(value)
        if issubclass(kind, (dict, list, set, deque, tuple, frozenset, bytearray)):
            return True
        if issubclass(kind, type):
            return _module_of(value) in self._own
        if kind is types.FunctionType:
            return value.__module__ in self._own
        if kind in _FOLLOWED or _is_iterator(kind):
            return True
        if registrations.is_ruled(kind):
            return True
        return _module_of(kind) in self._own


_FOLLOWED = (
    types.CellType,
    types.MethodType,
    types.GeneratorType,
    types.MappingProxyType,
    functools.partial,
    functools._lru_cache_wrapper,
)


def _is_iterator(kind: type) -> bool:
    """Return whether a class is one of Python's iterators, whose state `__reduce__` returns."""
    is_builtin = kind.__module__ == "builtins" and hasattr(kind, "__next__")
    return is_builtin or kind.__module__ == "itertools"


def _module_of(kind: type) -> str:
    # A metaclass may define `__getattribute__`.
    name = type.__getattribute__(kind, "__module__")
    return name if isinstance(name, str) else ""


def contents_of(value: Any) -> State:
    """Return the contents of an object, read only by methods of builtin types."""
    kind = type(value)
    try:
        for base, elements in _CONTAINERS:
            if issubclass(kind, base):
                return (*elements(value), *_attributes(value))
        if issubclass(kind, bytearray):
            return (bytes(value),)
        if issubclass(kind, type):
            subclasses = sorted(type.__subclasses__(value), key=id)
            names = {
                k: v for k, v in type.__getattribute__(value, "__dict__").items() if k[:2] != "__"
            }
            return (*_flat(names.items()), *map(id, subclasses))
        for exact, state in _STATES:
            if kind is exact:
                return state(value)
        if _is_iterator(kind):
            return tuple(_flat_state(value.__reduce__()))
        if registrations.is_ruled(kind):
            return (*_attributes(value), *registrations.rules_of(value))
        return tuple(_attributes(value))
    except Exception:  # noqa: BLE001 - an empty cell, or an iterator without `__reduce__`
        return (type(value),)


def _function_state(function: types.FunctionType) -> State:
    return (
        function.__code__,
        *(function.__defaults__ or ()),
        *_flat((function.__kwdefaults__ or {}).items()),
        *_flat(function.__dict__.items()),
        *(function.__closure__ or ()),
    )


def _generator_state(generator: types.GeneratorType[object, object, object]) -> State:
    frame = generator.gi_frame
    return (-1,) if frame is None else (frame.f_lasti, *_flat(frame.f_locals.items()))


def _attributes(value: object) -> Iterator[object]:
    """Yield the attributes of an instance, including those in slots."""
    with contextlib.suppress(AttributeError):
        yield from _flat(object.__getattribute__(value, "__dict__").items())
    for part in SLOTS.read(value):
        yield from part


def _without_submodules(names: dict[object, object]) -> Iterator[tuple[object, object]]:
    """Yield the items of a dictionary, without submodules if it is a package's namespace."""
    package = dict.get(names, "__name__")
    prefix = f"{package}." if isinstance(package, str) else None
    # An import sets a submodule in its package, also later: that is no change.
    for key, value in dict.items(names):
        if (
            prefix is None
            or type(value) is not types.ModuleType
            or value.__name__ != f"{prefix}{key}"
        ):
            yield key, value


def _flat(pairs: Iterable[tuple[object, object]]) -> Iterator[object]:
    for key, value in pairs:
        yield key
        yield value


def _flat_state(state: object) -> Iterator[object]:
    """Yield the parts of a reduced iterator, without the containers created by `__reduce__`."""
    if isinstance(state, tuple):
        for part in state:
            yield from _flat_state(part)
    else:
        yield state


def _same(before: State, now: State) -> bool:
    return len(before) == len(now) and all(
        # `==` of anything but plain values would run user code.
        old is new or (type(old) is type(new) and isinstance(old, _VALUES) and old == new)
        for old, new in zip(before, now, strict=True)
    )


_CONTAINERS: tuple[tuple[type, Callable[..., Iterable[object]]], ...] = (
    (dict, lambda names: _flat(_without_submodules(names))),
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (set, lambda elements: sorted(set.__iter__(elements), key=id)),
    (frozenset, lambda elements: sorted(frozenset.__iter__(elements), key=id)),
    (deque, deque.__iter__),
)
"""Containers, including subclasses, each with a function that returns its elements."""

_STATES: tuple[tuple[type, Callable[..., State]], ...] = (
    (types.FunctionType, _function_state),
    (types.CellType, lambda cell: (cell.cell_contents,)),
    (types.MethodType, lambda method: (method.__func__, method.__self__)),
    (types.GeneratorType, _generator_state),
    (
        functools.partial,
        lambda partial: (partial.func, *partial.args, *_flat(partial.keywords.items())),
    ),
    (
        functools._lru_cache_wrapper,
        lambda cached: (cached.cache_info().currsize, cached.__wrapped__),
    ),
)
"""Classes, without subclasses, each with a function that returns the contents of an object."""

_VALUES = (bool, int, float, complex, str, bytes)
