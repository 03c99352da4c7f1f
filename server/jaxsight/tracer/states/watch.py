"""Watch the objects that a call can reach: arguments, globals in its code, and its closure.

After the call, the watch yields changes and restores the objects, so that no tracer stays behind
and the next trace starts from the same state.
The search is bounded and visits each object once, without calling code of the objects.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Self

import jax
import numpy as np

from jaxsight.rewriting.rewriter import SEEN
from jaxsight.tracer.compat import in_place_updates
from jaxsight.tracer.isolation import code_origins, mutable_contents
from jaxsight.tracer.isolation.code_origins import USER
from jaxsight.tracer.isolation.mutable_contents import (
    CELL,
    CLASS,
    NAMES,
    SLOTS,
    ContentsKind,
)
from jaxsight.tracer.states import nnx

_MOST_OBJECTS = 20_000
"""Objects that are watched; what a call changes in others is lost and not undone."""

_MOST_ELEMENTS = 2_000
"""Maximum number of elements of a container that are followed; all are restored."""

_LEAVES = {
    str, bytes, int, float, complex, bool, type(None), type(Ellipsis), range, slice, CodeType,
}  # fmt: skip

_PARTS: dict[type, Callable[..., Iterable[object]]] = {
    MethodType: lambda method: (method.__self__, method.__func__),
    functools.partial: lambda partial: (partial.func, partial.args, partial.keywords),
    functools.cached_property: lambda descriptor: (descriptor.func,),
    property: lambda descriptor: (descriptor.fget, descriptor.fset),
    staticmethod: lambda descriptor: (descriptor.__func__,),
    classmethod: lambda descriptor: (descriptor.__func__,),
}

_OUTSIDE = frozenset(("jax", "jaxlib", "numpy", "ml_dtypes", "equinox", "jaxsight"))
"""Packages whose objects have no state that a traced function may change."""

_CONTAINERS = frozenset(("builtins", "collections", "types", "numpy"))


@dataclass(frozen=True, slots=True)
class Change:
    """A value that the call set, added or removed; `label` is the user's name of the place.

    `counts` is false if only arrays matter: inside the objects of a library, which may have caches.
    """

    label: str
    kind: ContentsKind[Any]
    target: object
    key: Any
    old: object
    new: object
    counts: bool


@dataclass(frozen=True, slots=True)
class _Location:
    """The place of a value: its name, and whether it is the user's."""

    label: str
    own: bool = True
    code: bool = False
    """Whether it was reached from the function's code, not from an argument."""

    def attribute(self, name: str) -> _Location:
        """Return the place of an attribute; deeper attributes have the name of the first."""
        deep = "." in self.label
        return _Location(self.label if deep else f"{self.label}.{name}", self.own, self.code)


@dataclass(frozen=True, slots=True)
class _Saved:
    kind: ContentsKind[Any]
    target: object
    contents: mutable_contents.Contents
    location: _Location
    owner: type | None
    """The class of the object with these attributes."""

    def at(self, key: object) -> _Location:
        """Return the place of a key's value; attributes and globals are added to the label."""
        if self.kind is NAMES and not self.location.label:
            return replace(self.location, label=str(key))
        is_attribute = self.kind is NAMES or self.owner is not None
        return self.location.attribute(str(key)) if is_attribute else self.location

    def unchanged(self, key: object, value: object) -> Change:
        """Return a value as a change with equal old and new values."""
        label = self.at(key).label
        return Change(label, self.kind, self.target, key, value, value, False)


class Watch:
    """A context around a call, at whose end all objects are restored.

    Args:
        function: the function to call.
        arguments: its arguments by parameter.
    """

    def __init__(self, function: object, arguments: Mapping[str, object]) -> None:
        self.holders: list[Change] = []
        """Places with NNX objects, as changes with equal old and new values."""
        self._saved: list[_Saved] = []
        self._replaced: dict[tuple[int, object], object] = {}
        self._visited: dict[int, object] = {}
        self._refs: dict[int, str] = {}
        self._waiting: deque[tuple[_Location, object]] = deque()
        self._waiting.extend((_Location(name), value) for name, value in arguments.items())
        self._waiting.append((_Location("", code=True), function))
        while self._waiting and len(self._visited) < _MOST_OBJECTS:
            self._visit(*self._waiting.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for saved in self._saved:
            if not mutable_contents.same(saved.contents, saved.kind.read(saved.target)):
                saved.kind.restore(saved.target, saved.contents)

    def put(self, change: Change, value: object) -> None:
        """Set another value in a place that an earlier call changed, before the call."""
        change.kind.write(change.target, change.key, value)
        self._replaced[id(change.target), mutable_contents.identity(change.key)] = value

    def changes(self) -> Iterator[Change]:
        """Yield the changes since the beginning."""
        for saved in self._saved:
            after = saved.kind.read(saved.target)
            if mutable_contents.same(saved.contents, after):
                continue
            for key, old, new in mutable_contents.differences(saved.contents, after):
                old = self._replaced.get((id(saved.target), mutable_contents.identity(key)), old)
                if old is new or _is_bookkeeping(saved, key, new):
                    continue
                label = saved.at(key).label
                yield Change(label, saved.kind, saved.target, key, old, new, saved.location.own)

    def beside(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield the unchanged values of lists and dicts with such changes.

        Each is a change with equal old and new values.
        """
        changed = {(id(change.target), mutable_contents.identity(change.key)) for change in changes}
        targets = {target for target, _ in changed}
        for saved in self._saved:
            if id(saved.target) not in targets or saved.kind is NAMES or saved.owner is not None:
                continue
            for key, value in zip(*saved.contents, strict=True):
                if (id(saved.target), mutable_contents.identity(key)) not in changed:
                    yield saved.unchanged(key, value)

    def label(self, value: object) -> str:
        """Return the name of a reachable reference (`jax.new_ref`), empty if unknown."""
        return self._refs.get(id(value), "")

    def _visit(self, location: _Location, value: Any) -> None:
        kind = type(value)
        if kind in _LEAVES or id(value) in self._visited or issubclass(kind, jax.core.Tracer):
            return
        if in_place_updates.is_ref(value):
            self._refs.setdefault(id(value), location.label)
            return
        if nnx.is_node(value) or issubclass(kind, ModuleType):
            return
        self._visited[id(value)] = value
        if kind is FunctionType:
            self._visit_function(location, value)
        elif kind in _PARTS:
            self._waiting.extend((location, part) for part in _PARTS[kind](value))
        else:
            if issubclass(kind, tuple):
                self._waiting.extend((location, part) for part in tuple.__iter__(value))
            self._visit_object(location, value)

    def _visit_object(self, location: _Location, value: Any) -> None:
        is_class = issubclass(type(value), type)
        kind = value if is_class else type(value)
        wrapped = _wrapped(value)
        if wrapped is not None:
            self._waiting.append((location, wrapped))
        package = _package(kind)
        if package in _OUTSIDE and kind is not np.ndarray:
            return
        module = str(type.__getattribute__(kind, "__module__"))
        own_class = code_origins.of_module(module) == USER
        if is_class:
            if own_class:
                label = location.label if location.code and location.label else value.__name__
                self._save(CLASS, value, _Location(label, location.own, location.code), value)
                around = _Location("", location.own, True)
                self._waiting.extend((around, base) for base in value.__bases__)
            return
        if package not in _CONTAINERS:
            location = _Location(location.label, location.own and own_class, location.code)
        if own_class:
            self._waiting.append((_Location(kind.__name__, code=True), kind))
        for changing, target in mutable_contents.kinds(value):
            named = changing is SLOTS or (target is not value)
            self._save(changing, target, location, kind if named else None)

    def _visit_function(self, location: _Location, function: FunctionType) -> None:
        if code_origins.of_file(function.__code__.co_filename) != USER:
            return
        names = code_origins.names_in(function.__code__)
        module_names = function.__globals__
        self._save_names(module_names, "")
        for name in sorted(names & module_names.keys()):
            value = module_names[name]
            if issubclass(type(value), ModuleType):
                self._visit_module(name, value, names)
            else:
                if nnx.is_node(value):
                    change = Change(name, NAMES, module_names, name, value, value, False)
                    self.holders.append(change)
                self._waiting.append((_Location(name, code=True), value))
        free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in free:
            if id(cell) not in self._visited:
                self._visited[id(cell)] = cell
                self._save(CELL, cell, _Location(name, code=True), None)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._waiting.append((_Location(function.__name__, code=True), value))
        if (wrapped := _wrapped(function)) is not None:
            self._waiting.append((location, wrapped))

    def _visit_module(self, name: str, module: ModuleType, names: set[str]) -> None:
        """Visit the names of a user's module that the function's code refers to."""
        file = vars(module).get("__file__")
        if not isinstance(file, str) or code_origins.of_file(file) != USER:
            return
        self._save_names(vars(module), name)
        for attribute in sorted(names & vars(module).keys()):
            value = vars(module)[attribute]
            if not issubclass(type(value), ModuleType):
                self._waiting.append((_Location(f"{name}.{attribute}", code=True), value))

    def _save_names(self, names: dict[str, object], label: str) -> None:
        """Save the names of a module; only those that code reads are visited."""
        if id(names) not in self._visited:
            self._visited[id(names)] = names
            location = _Location(label, code=True)
            self._saved.append(_Saved(NAMES, names, NAMES.read(names), location, None))

    def _save(
        self, kind: ContentsKind[Any], target: object, location: _Location, owner: type | None
    ) -> None:
        contents = kind.read(target)
        saved = _Saved(kind, target, contents, location, owner)
        self._saved.append(saved)
        for key, value in itertools.islice(zip(*contents, strict=True), _MOST_ELEMENTS):
            if nnx.is_node(value):
                self.holders.append(saved.unchanged(key, value))
            self._waiting.append((saved.at(key), value))


def _is_bookkeeping(saved: _Saved, key: object, new: object) -> bool:
    """Return whether a change is not one of the program's state.

    These are attributes set by Python, imports, and cached properties.
    """
    if issubclass(type(new), ModuleType):
        return True
    if type(key) is not str or (saved.owner is None and saved.kind is not NAMES):
        return False
    if key == SEEN or (key.startswith("__") and key.endswith("__")):
        return True
    bases = type.__dict__["__mro__"].__get__(saved.owner) if saved.owner is not None else ()
    return any(type(vars(base).get(key)) is functools.cached_property for base in bases)


def _package(kind: type) -> str:
    return str(type.__getattribute__(kind, "__module__")).partition(".")[0]


def _wrapped(value: object) -> object:
    """Return the function in a wrapper of `functools.wraps` or `jax.jit`, if any."""
    names = mutable_contents.attributes(value)
    function = names.get("__wrapped__") if names is not None else None
    if function is None and _package(type(value)) in ("jax", "jaxlib"):
        function = getattr(value, "__wrapped__", None)
    return function
