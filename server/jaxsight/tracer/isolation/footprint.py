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
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from jaxsight.tracer.compat import registrations

_MOST = 4000
"""Maximum number of objects."""

_PLAIN = (
    *(bool, int, float, complex, str, bytes, type(None), range, slice, types.ModuleType),
    *(types.BuiltinFunctionType, types.MethodDescriptorType, type(Ellipsis), types.CodeType),
)
_SEQUENCES: tuple[Iterable[object], ...] = ([], (), "", b"", {}, {}.items(), {}.values(), set())
_ITERATORS: tuple[type, ...] = (
    *map(type, map(iter, _SEQUENCES)),
    *(type(iter(range(1))), type(iter(range(1 << 70))), type(reversed([]))),
    *(map, filter, zip, enumerate),
)

State = tuple[Any, ...]


class Footprint:
    """The contents of all objects reachable from the namespaces, by identity."""

    def __init__(self, namespaces: Iterable[Mapping[str, Any]], own: AbstractSet[str]) -> None:
        """Record the contents; `own` are the modules whose classes and functions are followed."""
        self._own = own
        self._seen: list[tuple[Any, State]] = []
        self._complete = True
        self._walk(namespaces)

    def holds(self) -> bool:
        """Return whether nothing has changed."""
        return self._complete and all(_same(state, _state(thing)) for thing, state in self._seen)

    def _walk(self, namespaces: Iterable[Mapping[str, Any]]) -> None:
        known = {id(vars(builtins))}
        todo: deque[Any] = deque(namespaces)
        while todo:
            thing = todo.popleft()
            if id(thing) in known or isinstance(thing, _PLAIN):
                continue
            known.add(id(thing))
            if not self._is_looked_into(thing):
                continue
            if len(self._seen) >= _MOST:
                self._complete = False
                return
            state = _state(thing)
            self._seen.append((thing, state))
            todo.extend(state)

    def _is_looked_into(self, thing: Any) -> bool:
        kind = type(thing)
        if issubclass(kind, (dict, list, set, deque, tuple, frozenset, bytearray)):
            return True
        if issubclass(kind, type):
            return _module_of(thing) in self._own
        if kind is types.FunctionType:
            return thing.__module__ in self._own
        if kind in _HELD or kind in _ITERATORS or kind.__module__ == "itertools":
            return True
        if registrations.is_ruled(kind):
            return True
        return _module_of(kind) in self._own


_HELD = (
    types.CellType,
    types.MethodType,
    types.GeneratorType,
    types.MappingProxyType,
    functools.partial,
    functools._lru_cache_wrapper,
)


def _module_of(kind: type) -> str:
    name = type.__getattribute__(kind, "__module__")
    return name if isinstance(name, str) else ""


def _state(thing: Any) -> State:
    """Return the contents of an object, read only by methods of builtin types."""
    kind = type(thing)
    try:
        if issubclass(kind, dict):
            return (*_flat(_without_submodules(thing)), *_attributes(thing))
        if issubclass(kind, list):
            return (*list.__iter__(thing), *_attributes(thing))
        if issubclass(kind, tuple):
            return (*tuple.__iter__(thing), *_attributes(thing))
        if issubclass(kind, set):
            return (*sorted(set.__iter__(thing), key=id), *_attributes(thing))
        if issubclass(kind, frozenset):
            return (*sorted(frozenset.__iter__(thing), key=id), *_attributes(thing))
        if issubclass(kind, deque):
            return (*deque.__iter__(thing), *_attributes(thing))
        if issubclass(kind, bytearray):
            return (bytes(thing),)
        if issubclass(kind, type):
            subclasses = sorted(type.__subclasses__(thing), key=id)
            names = {
                k: v for k, v in type.__getattribute__(thing, "__dict__").items() if k[:2] != "__"
            }
            return (*_flat(names.items()), *map(id, subclasses))
        if kind is types.FunctionType:
            cells = thing.__closure__ or ()
            return (
                thing.__code__,
                *(thing.__defaults__ or ()),
                *_flat((thing.__kwdefaults__ or {}).items()),
                *_flat(thing.__dict__.items()),
                *cells,
            )
        if kind is types.CellType:
            return (thing.cell_contents,)
        if kind is types.MethodType:
            return (thing.__func__, thing.__self__)
        if kind is types.GeneratorType:
            frame = thing.gi_frame
            return (-1,) if frame is None else (frame.f_lasti, *_flat(frame.f_locals.items()))
        if kind is functools.partial:
            return (thing.func, *thing.args, *_flat(thing.keywords.items()))
        if kind is functools._lru_cache_wrapper:
            return (thing.cache_info().currsize, thing.__wrapped__)
        if kind in _ITERATORS or kind.__module__ == "itertools":
            return tuple(_flat_state(thing.__reduce__()))
        if registrations.is_ruled(kind):
            return (*_attributes(thing), *registrations.rules_of(thing))
        return tuple(_attributes(thing))
    except Exception:  # noqa: BLE001 - an empty cell, or an iterator without `__reduce__`
        return (type(thing),)


def _attributes(thing: Any) -> Iterator[Any]:
    """Yield the attributes of an instance, including those in slots."""
    with contextlib.suppress(AttributeError):
        yield from _flat(object.__getattribute__(thing, "__dict__").items())
    for kind in type(thing).__mro__[:-1]:
        for name, slot in type.__getattribute__(kind, "__dict__").items():
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    yield slot.__get__(thing)
                except AttributeError:
                    yield name


def _without_submodules(names: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a dictionary, without submodules if it is a package's namespace."""
    package = dict.get(names, "__name__")
    prefix = f"{package}." if isinstance(package, str) else None
    for key, value in dict.items(names):
        if (
            prefix is None
            or type(value) is not types.ModuleType
            or value.__name__ != f"{prefix}{key}"
        ):
            yield key, value


def _flat(items: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    for key, value in items:
        yield key
        yield value


def _flat_state(state: Any) -> Iterator[Any]:
    """Yield the parts of a reduced iterator, without the containers created by `__reduce__`."""
    if isinstance(state, tuple):
        for part in state:
            yield from _flat_state(part)
    else:
        yield state


def _same(before: State, now: State) -> bool:
    return len(before) == len(now) and all(
        one is other or (type(one) is type(other) and isinstance(one, _VALUES) and one == other)
        for one, other in zip(before, now, strict=True)
    )


_VALUES = (bool, int, float, complex, str, bytes)
