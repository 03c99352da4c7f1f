"""Detect changes of other modules by a file: names, class attributes, and entries of containers.

A snapshot has shallow copies of the namespaces of all loaded modules, of the classes that they
define and of the containers that they name; later differences are found by equality first, then by
identity.
Libraries change themselves often, when they fill a cache or load a part of themselves, which does
not matter: for an installed module, only changes count that its own code does not make, or whose
values are the user's.
In a module of the project, every change counts.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

from jaxsight.tracer.isolation import origins
from jaxsight.tracer.isolation.import_path import SliceLoader

Known = Callable[[], set[int]]

_GONE = object()

_APART = frozenset(
    {"sys", "builtins", "warnings", "linecache", "importlib", "threading", "gc", "signal", "re"}
)
"""Modules whose state is restored elsewhere, or changes at each request."""

_NO_CHANGE = frozenset(
    {
        "__abstractmethods__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dict__",
        "__doc__",
        "__orig_bases__",
        "__parameters__",
        "__path__",
        "__signature__",
        "__static_attributes__",
        "__warningregistry__",
        "__weakref__",
    }
)
"""Names that Python itself sets, on access or when it loads modules."""

_CONTAINERS = (dict, list, set, OrderedDict, defaultdict)

_MUTATORS = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "setdefault",
        "update",
    }
)


@dataclass(slots=True)
class _Copied:
    """A namespace, the attributes of a class, or a container, with a copy.

    `live` is its current content, to compare with.
    """

    module: ModuleType
    holder: Any
    live: Any
    then: Any
    name: str = ""
    """The module's name of a container."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed name, attribute or key, before and after; for a list or a set its whole content."""

    holder: Any
    key: Any
    before: Any
    after: Any


@dataclass(slots=True)
class Changes:
    """Changes of modules; `lost` has those that can be neither undone nor repeated."""

    changes: tuple[_Change, ...] = ()
    lost: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def undo(self) -> None:
        """Restore the values from before the changes."""
        for change in reversed(self.changes):
            self._put(change, change.before)

    def redo(self) -> None:
        """Repeat the changes."""
        for change in self.changes:
            self._put(change, change.after)

    def _put(self, change: _Change, value: Any) -> None:
        holder, key = change.holder, change.key
        try:
            match holder:
                case dict():
                    if value is _GONE:
                        dict.pop(holder, key, None)
                    else:
                        dict.__setitem__(holder, key, value)
                case list():
                    holder[:] = value
                case set():
                    holder.clear()
                    holder.update(value)
                case _ if value is _GONE:
                    type.__delattr__(holder, key)
                case _:
                    type.__setattr__(holder, key, value)
        except Exception:  # noqa: BLE001 - metaclasses, hashes and comparisons may be the user's
            self.lost.append("changed a library for good")


class Snapshot:
    """Loaded modules, as they are when `extend` first sees them."""

    def __init__(self, apart: tuple[ModuleType, ...] = ()) -> None:
        """Take a snapshot; changes of names in `apart` are ignored, but not of their classes."""
        self._apart = frozenset(module.__name__ for module in apart) | _APART
        self._modules: dict[int, ModuleType] = {}
        self._copied: dict[int, _Copied] = {}
        self._left: set[int] = set()
        self._made = _made()
        self._listed: list[object] = []
        """The modules that were loaded at the last call of `extend`."""
        for name in _APART & sys.modules.keys():
            self._take(sys.modules[name])
        self.extend()

    def extend(self) -> None:
        """Add modules that were loaded since, and remove those that were unloaded."""
        if same_objects(self._listed, sys.modules.values()):
            return
        loaded: dict[str, object] = dict(sys.modules)
        now = {id(module): module for module in loaded.values() if isinstance(module, ModuleType)}
        gone = self._modules.keys() - now.keys()
        if gone:
            self._copied = {
                key: each for key, each in self._copied.items() if id(each.module) not in gone
            }
            for key in gone:
                del self._modules[key]
        complete = True
        for key, module in now.items():
            if key not in self._modules:
                if _is_complete(module):
                    self._modules[key] = module
                    self._take(module)
                elif _is_being_imported(module):
                    complete = False
        self._listed = list(loaded.values()) if complete else []

    def changes(self) -> Changes:
        """Return the changes since the snapshot."""
        known = functools.cache(self._known)
        found = [
            _Change(sys.modules, name, before, after)
            for name, before, after in _differences(self._made, _made())
        ]
        for each in self._copied.values():
            if not _same(each.live, each.then):
                found += _counting(each, known)
        return Changes(tuple(found))

    def _take(self, module: ModuleType) -> None:
        names = vars(module)
        if module.__name__ in _APART:
            # Other modules may have references to these.
            self._left.update(id(each) for each in names.values() if type(each) in _CONTAINERS)
            return
        if module.__name__ not in self._apart:
            self._copied[id(names)] = _Copied(module, names, names, dict(names))
        for name, value in list(names.items()):
            kind = type(value)
            if kind in _CONTAINERS:
                if id(value) not in self._copied and id(value) not in self._left:
                    self._copied[id(value)] = _Copied(module, value, value, value.copy(), name)
            elif isinstance(value, type) and id(value) not in self._copied:
                attributes = vars(value)
                # Classes of other modules are copied with those modules.
                if attributes.get("__module__") == module.__name__:
                    then = dict(attributes)
                    self._copied[id(value)] = _Copied(module, value, attributes, then)

    def _known(self) -> set[int]:
        """Return the objects named by modules: keys of registries that are not the user's."""
        return {
            id(value)
            for each in self._copied.values()
            if each.holder is each.live and not each.name
            for value in each.then.values()
        }


def same_objects(some: Collection[object], others: Collection[object]) -> bool:
    """Return whether two collections contain the same objects in the same order."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _made() -> dict[str, object]:
    """Return modules that were not imported, such as the user's substitutes for missing modules."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if getattr(module, "__spec__", None) is None
        and not name.startswith(("__", "_cython"))
        and not hasattr(module, "__path__")
        and origins.of_module(type(module).__module__) != origins.LIBRARY
    }


def _is_complete(module: ModuleType) -> bool:
    """Return whether a module is completely imported, and neither ours nor a traced file."""
    if module.__name__ == "__main__" or module.__name__.partition(".")[0] == "jaxsight":
        return False
    spec = getattr(module, "__spec__", None)
    loader = getattr(spec, "loader", None)
    return not (loader is None or isinstance(loader, SliceLoader) or _is_being_imported(module))


def _is_being_imported(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _same(one: Any, other: Any) -> bool:
    """Return whether two containers are equal, with identical elements assumed to be equal."""
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays, and comparisons defined by user code
        return False


def _counting(copied: _Copied, known: Known) -> Iterator[_Change]:
    """Yield the changes of a namespace, class or container that count.

    The other changes are added to its copy.
    """
    project = origins.of_module(copied.module.__name__) == origins.USER
    if isinstance(copied.live, list | set):
        added = [each for each in copied.live if not _holds(copied.then, each)]
        if project or not _mutates(copied) or any(map(is_users, added)):
            yield _Change(copied.holder, None, copied.then, copied.live.copy())
        else:
            copied.then = copied.live.copy()
        return
    for key, before, after in list(_differences(copied.then, copied.live)):
        if copied.name:
            counts = project or _counts_in_container(copied, key, before, after, known)
        else:
            counts = key not in _NO_CHANGE and _counts_as_name(copied, key, before, after, project)
        if counts:
            yield _Change(copied.holder, key, before, after)
        elif after is _GONE:
            del copied.then[key]
        else:
            copied.then[key] = after


def _differences(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for key, value in list(now.items()):
        before = then.get(key, _GONE)
        if before is not value:
            yield key, before, value
    for key, before in then.items():
        if key not in now:
            yield key, before, _GONE


def _counts_as_name(copied: _Copied, name: str, before: Any, after: Any, project: bool) -> bool:
    if isinstance(before, ModuleType) or isinstance(after, ModuleType):
        return False  # part of a package, loaded or unloaded
    if project or is_users(after):
        return True
    if before is _GONE and callable(after):
        return False
    stored = _stored(copied.module)
    if name in stored or "setattr" in stored or "globals" in stored:
        return False
    return before is not _GONE or "__getattr__" not in vars(copied.module)


def _counts_in_container(copied: _Copied, key: Any, before: Any, after: Any, known: Known) -> bool:
    if before is _GONE and _is_new(key, known):
        return False  # registrations for the user's objects do not affect other files
    if is_users(after):
        return True
    # A library adds its own entries when it is loaded.
    return not (before is _GONE and callable(after)) and not _mutates(copied)


def _is_new(key: Any, known: Known) -> bool:
    """Return whether a key is an object that no module has."""
    if isinstance(key, str | int | float | tuple):
        return False
    return is_users(key) or (not isinstance(key, type) and id(key) not in known())


def _holds(container: Any, value: Any) -> bool:
    return any(each is value for each in container)


def is_users(value: Any) -> bool:
    """Return whether a function, class or instance is the user's, perhaps wrapped by a library."""
    for _ in range(8):
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            if origins.of_file(code.co_filename) == origins.USER:
                return True
        elif isinstance(value, type):
            return _is_users_class(value)
        inner = _inner(value)
        if inner is None:
            break
        value = inner
    return _is_users_class(type(value))


def _is_users_class(kind: type) -> bool:
    """Return whether a class is the user's, by its module.

    If that is not loaded (a built-in class may name any module), its methods decide.
    """
    name = str(kind.__module__)
    if name in sys.modules or name == "builtins":
        return name != "builtins" and origins.of_module(name) == origins.USER
    codes = (getattr(each, "__code__", None) for each in vars(kind).values())
    return any(
        isinstance(code, CodeType) and origins.of_file(code.co_filename) == origins.USER
        for code in codes
    )


_WRAPPED = ("__wrapped__", "__func__", "func", "fget", "fun")


def _inner(value: Any) -> Any:
    """Return the object that a wrapper wraps, or `None`."""
    return next((each for name in _WRAPPED if (each := _get(value, name)) is not None), None)


def _get(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - any attribute of any object
        return None


def _mutates(copied: _Copied) -> bool:
    """Return whether functions of its module may change a container of this name."""
    return copied.name in _mutated(copied.module)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """Yield the code of all functions that a module's own file defines."""
    file = getattr(module, "__file__", None)
    seen: set[int] = set()
    todo: list[Any] = list(vars(module).values())
    while todo:
        value = todo.pop()
        if isinstance(value, CodeType):
            yield value
            todo += [each for each in value.co_consts if isinstance(each, CodeType)]
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                todo += vars(value).values()
            continue
        for _ in range(8):
            code = _get(value, "__code__")
            if isinstance(code, CodeType):
                if code.co_filename == file:
                    todo.append(code)
                todo += [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
            value = _inner(value)
            if value is None:
                break


def _is_full(cell: types.CellType) -> bool:
    try:
        return callable(cell.cell_contents)
    except ValueError:
        return False


@functools.cache
def _stored(module: ModuleType) -> frozenset[str]:
    """Return the globals and attributes that a module's functions store.

    `setattr` and `globals` are included if the functions use them.
    """
    found: set[str] = set()
    for code in _codes(module):
        found |= {"setattr", "globals"}.intersection(code.co_names)
        for instruction in dis.get_instructions(code):
            if instruction.opname in _STORES:
                found.add(instruction.argval)
    return frozenset(found)


_STORES = frozenset({"STORE_GLOBAL", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_ATTR"})


@functools.cache
def _mutated(module: ModuleType) -> frozenset[str]:
    """Return the names in functions that change a container."""
    found: set[str] = set()
    for code in _codes(module):
        if not _MUTATORS.isdisjoint(code.co_names) or any(
            each.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
            for each in dis.get_instructions(code)
        ):
            found.update(code.co_names)
    return frozenset(found)
