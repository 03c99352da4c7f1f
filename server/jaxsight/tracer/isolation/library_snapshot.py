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

import functools
import operator
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from jaxsight.text.names import words
from jaxsight.tracer.isolation import code_origins, module_code, mutable_contents
from jaxsight.tracer.isolation.mutable_contents import GONE

NamedObjects = Callable[[], set[int]]

_IGNORED_MODULES = frozenset(
    {"sys", "builtins", "warnings", "linecache", "importlib", "threading", "gc", "signal", "re"}
)
"""Modules whose state is restored elsewhere, or changes at each request."""

_SET_BY_PYTHON = frozenset(
    words(
        """__abstractmethods__ __annotate_func__ __annotations__ __annotations_cache__ __dict__
        __doc__ __orig_bases__ __parameters__ __path__ __signature__ __static_attributes__
        __warningregistry__ __weakref__"""
    )
)
"""Names that Python itself sets, on access or when it loads modules."""

_CONTAINERS = (dict, list, set, OrderedDict, defaultdict)


@dataclass(slots=True)
class _Copied:
    """A namespace, the attributes of a class, or a container, with a copy.

    `live` is its current content, to compare with.
    """

    module: ModuleType
    holder: object
    live: Any
    then: Any
    name: str = ""
    """The module's name of a container."""


class _Elements(list[object]):
    """The elements of a list or a set."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed name, attribute or key, before and after; of a list or a set all `_Elements`."""

    holder: object
    key: Any
    before: object
    after: object


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
        (kind, target), *_ = mutable_contents.kinds(change.holder)
        try:
            if isinstance(value, _Elements):
                kind.restore(target, ([*range(len(value))], value))
            else:
                kind.write(target, change.key, value)
        except Exception:  # noqa: BLE001 - metaclasses, hashes and comparisons may be the user's
            self.lost.append("changed a library for good")


class Snapshot:
    """Loaded modules, as they are when `extend` first sees them."""

    def __init__(self, ignored: tuple[ModuleType, ...] = ()) -> None:
        """Take a snapshot; changes of names in `ignored` are ignored, but not of their classes."""
        self._ignored_modules = frozenset(module.__name__ for module in ignored) | _IGNORED_MODULES
        self._modules: dict[int, ModuleType] = {}
        self._copied: dict[int, _Copied] = {}
        self._ignored_containers: set[int] = set()
        self._unimported = _unimported_modules()
        self._listed: list[object] = []
        """The modules that were loaded at the last call of `extend`."""
        for name in _IGNORED_MODULES & sys.modules.keys():
            self._copy(sys.modules[name])
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
                key: copied for key, copied in self._copied.items() if id(copied.module) not in gone
            }
            for key in gone:
                del self._modules[key]
        complete = True
        for key, module in now.items():
            if key not in self._modules:
                if _is_complete(module):
                    self._modules[key] = module
                    self._copy(module)
                elif code_origins.is_being_imported(module):
                    complete = False
        # A module that is still being imported has to be looked at again.
        self._listed = list(loaded.values()) if complete else []

    def changes(self) -> Changes:
        """Return the changes since the snapshot."""
        # Read at most once, and only if a change needs it: these are all names of all modules.
        named_objects = functools.cache(self._named_objects)
        changes = [
            _Change(sys.modules, name, before, after)
            for name, before, after in _differences(self._unimported, _unimported_modules())
        ]
        for copied in self._copied.values():
            if not code_origins.equal(copied.live, copied.then):
                changes += _counting_changes(copied, named_objects)
        return Changes(tuple(changes))

    def _copy(self, module: ModuleType) -> None:
        names = vars(module)
        if module.__name__ in _IGNORED_MODULES:
            # Other modules may have references to these.
            self._ignored_containers.update(
                id(container) for container in names.values() if type(container) in _CONTAINERS
            )
            return
        if module.__name__ not in self._ignored_modules:
            self._copied[id(names)] = _Copied(module, names, names, dict(names))
        for name, value in list(names.items()):
            kind = type(value)
            if kind in _CONTAINERS:
                if id(value) not in self._copied and id(value) not in self._ignored_containers:
                    self._copied[id(value)] = _Copied(module, value, value, value.copy(), name)
            elif isinstance(value, type) and id(value) not in self._copied:
                attributes = vars(value)
                # Classes of other modules are copied with those modules.
                if attributes.get("__module__") == module.__name__:
                    then = dict(attributes)
                    self._copied[id(value)] = _Copied(module, value, attributes, then)

    def _named_objects(self) -> set[int]:
        """Return the objects named by modules: keys of registries that are not the user's."""
        return {
            id(value)
            for copied in self._copied.values()
            if copied.holder is copied.live and not copied.name
            for value in copied.then.values()
        }


def same_objects(before: Collection[object], after: Collection[object]) -> bool:
    """Return whether two collections contain the same objects in the same order."""
    return len(before) == len(after) and all(map(operator.is_, before, after))


def _unimported_modules() -> dict[str, object]:
    """Return modules that were not imported, such as the user's substitutes for missing modules."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if getattr(module, "__spec__", None) is None
        and not name.startswith(("__", "_cython"))
        and not hasattr(module, "__path__")
        and code_origins.of_module(type(module).__module__) != code_origins.LIBRARY
    }


def _is_complete(module: ModuleType) -> bool:
    """Return whether a module is completely imported, and neither ours nor a traced file."""
    if module.__name__ == "__main__" or module.__name__.partition(".")[0] == "jaxsight":
        return False
    return code_origins.is_imported(module)


def _counting_changes(copied: _Copied, named_objects: NamedObjects) -> Iterator[_Change]:
    """Yield the changes of a namespace, class or container that count.

    The other changes are added to its copy.
    """
    project = code_origins.of_module(copied.module.__name__) == code_origins.USER
    if isinstance(copied.live, list | set):
        added = [
            element for element in copied.live if not any(element is known for known in copied.then)
        ]
        if project or not _mutates(copied) or any(map(code_origins.is_users, added)):
            yield _Change(copied.holder, None, _Elements(copied.then), _Elements(copied.live))
        else:
            copied.then = copied.live.copy()
        return
    for key, before, after in list(_differences(copied.then, copied.live)):
        if copied.name:
            counts = project or _counts_in_container(copied, key, before, after, named_objects)
        else:
            counts = key not in _SET_BY_PYTHON and _counts_as_name(
                copied, key, before, after, project
            )
        if counts:
            yield _Change(copied.holder, key, before, after)
        elif after is GONE:
            del copied.then[key]
        else:
            copied.then[key] = after


def _differences(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    # By equal keys, not by the same ones as `mutable_contents`: a registry may get an entry again
    # under a new key that is equal, such as a tuple.
    for key, value in list(now.items()):
        before = then.get(key, GONE)
        if before is not value:
            yield key, before, value
    for key, before in then.items():
        if key not in now:
            yield key, before, GONE


def _counts_as_name(
    copied: _Copied, name: str, before: object, after: object, project: bool
) -> bool:
    if isinstance(before, ModuleType) or isinstance(after, ModuleType):
        return False  # part of a package, loaded or unloaded
    if project or code_origins.is_users(after):
        return True
    if before is GONE and callable(after):
        return False
    stored = module_code.stored(copied.module)
    if name in stored or "setattr" in stored or "globals" in stored:
        return False
    return before is not GONE or "__getattr__" not in vars(copied.module)


def _counts_in_container(
    copied: _Copied, key: object, before: object, after: object, named_objects: NamedObjects
) -> bool:
    if before is GONE and _is_new(key, named_objects):
        return False  # registrations for the user's objects do not affect other files
    if code_origins.is_users(after):
        return True
    # A library adds its own entries when it is loaded.
    return not (before is GONE and callable(after)) and not _mutates(copied)


def _is_new(key: object, named_objects: NamedObjects) -> bool:
    """Return whether a key is an object that no module has."""
    if isinstance(key, str | int | float | tuple):
        return False
    return code_origins.is_users(key) or (
        not isinstance(key, type) and id(key) not in named_objects()
    )


def _mutates(copied: _Copied) -> bool:
    """Return whether functions of its module may change a container of this name."""
    return copied.name in module_code.mutated(copied.module)
