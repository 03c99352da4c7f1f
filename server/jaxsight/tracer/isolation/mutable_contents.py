"""Read, set and restore the contents of mutable objects without running user code.

Each kind reads an object as keys with values.
It calls the methods of Python's own classes, so that an override in a subclass is not called; the
only exception is hashing the key of a dict.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from types import CellType, MemberDescriptorType
from typing import Any, Protocol, TypeVar

import numpy as np

GONE = object()
"""Represents a missing value."""

_LARGEST = 1 << 20
"""Bytes of a NumPy array whose contents are copied for each call; larger ones are not undone."""

_Sequence = list[object] | collections.deque[object]
Contents = tuple[list[object], list[object]]
"""Keys and values."""

Target_contra = TypeVar("Target_contra", contravariant=True)


class ContentsKind(Protocol[Target_contra]):
    """A kind of mutable object, which it takes as `target`."""

    def read(self, target: Target_contra) -> Contents: ...

    def write(self, target: Target_contra, key: object, value: object) -> None:
        """Set a value, or remove it if it is `GONE`."""

    def restore(self, target: Target_contra, contents: Contents) -> None:
        for key, old, _ in list(differences(contents, self.read(target))):
            self.write(target, key, old)


class _Names(ContentsKind[dict[Any, Any]]):
    """The namespace of a module, which must never be empty while its code may run."""

    def read(self, target: dict[Any, Any]) -> Contents:
        return list(dict.keys(target)), list(dict.values(target))

    def write(self, target: dict[object, object], key: object, value: object) -> None:
        is_ordered = issubclass(type(target), collections.OrderedDict)
        base = collections.OrderedDict if is_ordered else dict
        if value is not GONE:
            base.__setitem__(target, key, value)
        elif dict.__contains__(target, key):
            base.__delitem__(target, key)


class _Dict(_Names):
    """A dict, including the attributes of an object, whose order is restored too."""

    def restore(self, target: dict[object, object], contents: Contents) -> None:
        super().restore(target, contents)
        keys, values = contents
        if not _same(list(dict.keys(target)), keys):
            for key in keys:
                self.write(target, key, GONE)
            for key, value in zip(keys, values, strict=True):
                self.write(target, key, value)


class _List(ContentsKind[_Sequence]):
    """A list or a deque, by position."""

    def read(self, target: _Sequence) -> Contents:
        values = list(_base(target).__iter__(target))
        return list(range(len(values))), values

    def write(self, target: _Sequence, key: object, value: object) -> None:
        if value is not GONE:
            _base(target).__setitem__(target, key, value)

    def restore(self, target: _Sequence, contents: Contents) -> None:
        base = _base(target)
        base.clear(target)
        base.extend(target, contents[1])


class _Set(ContentsKind[set[object]]):
    """A set; its elements are both keys and values."""

    def read(self, target: set[object]) -> Contents:
        elements = list(set.__iter__(target))
        return elements, elements

    def write(self, target: set[object], key: object, value: object) -> None:
        if value is not GONE:
            set.discard(target, key)
            set.add(target, value)

    def restore(self, target: set[object], contents: Contents) -> None:
        set.clear(target)
        set.update(target, contents[1])


class _Slots(ContentsKind[object]):
    """The attributes of an object in `__slots__` of its classes."""

    def read(self, target: object) -> Contents:
        values = {name: _value(member, target) for name, member in _members(target).items()}
        present = [(name, value) for name, value in values.items() if value is not GONE]
        return [name for name, _ in present], [value for _, value in present]

    def write(self, target: object, key: Any, value: object) -> None:
        member = _members(target)[key]
        if value is not GONE:
            member.__set__(target, value)
        elif _value(member, target) is not GONE:
            member.__delete__(target)


class _Class(ContentsKind[type]):
    """The attributes of a class."""

    def read(self, target: type) -> Contents:
        names = [n for n in vars(target) if not (n.startswith("__") and n.endswith("__"))]
        return [*names], [vars(target)[name] for name in names]

    def write(self, target: type, key: Any, value: object) -> None:
        if value is not GONE:
            type.__setattr__(target, key, value)
        elif key in vars(target):
            type.__delattr__(target, key)


class _Cell(ContentsKind[CellType]):
    """A variable that a function shares with enclosing ones."""

    def read(self, target: CellType) -> Contents:
        try:
            return ["contents"], [target.cell_contents]
        except ValueError:
            return [], []

    def write(self, target: CellType, key: object, value: object) -> None:
        if value is not GONE:
            target.cell_contents = value
        elif self.read(target)[0]:
            del target.cell_contents


class _Numbers(ContentsKind[np.ndarray]):
    """The contents of a NumPy array, as bytes."""

    def read(self, target: np.ndarray) -> Contents:
        return [()], [np.ndarray.tobytes(target)]

    def write(self, target: np.ndarray, key: object, value: object) -> None:
        raise AssertionError("the contents of an array are only read and restored")

    def restore(self, target: np.ndarray, contents: Contents) -> None:
        (saved,) = contents[1]
        assert isinstance(saved, bytes)
        np.copyto(target, np.frombuffer(saved, target.dtype).reshape(target.shape))


DICT, NAMES, LIST, SET, SLOTS, CLASS, CELL, NUMBERS = (
    _Dict(), _Names(), _List(), _Set(), _Slots(), _Class(), _Cell(), _Numbers(),
)  # fmt: skip


_BY_CLASS: Sequence[tuple[type, ContentsKind[Any]]] = (
    (dict, DICT), (list, LIST), (collections.deque, LIST), (set, SET), (CellType, CELL),
)  # fmt: skip


def kinds(value: Any) -> Iterable[tuple[ContentsKind[Any], object]]:
    """Yield the kinds in which a value can be changed, each with the object to change.

    That object is the value itself or its `__dict__`.
    """
    kind = type(value)
    yield from ((contents, value) for base, contents in _BY_CLASS if issubclass(kind, base))
    if kind is np.ndarray:
        plain = value.dtype.kind not in "OV" and value.flags.writeable
        if plain and value.nbytes <= _LARGEST:
            yield NUMBERS, value
        return
    if issubclass(kind, type):
        yield CLASS, value
        return
    if (names := attributes(value)) is not None:
        yield DICT, names
    if _members(value):
        yield SLOTS, value


def attributes(value: object) -> dict[str, object] | None:
    """Return the `__dict__` of an object without calling code of its class."""
    for base in type.__dict__["__mro__"].__get__(type(value)):
        descriptor = vars(base).get("__dict__")
        if descriptor is not None:
            if type(descriptor).__name__ != "getset_descriptor":
                return None
            names = descriptor.__get__(value)
            return names if type(names) is dict else None
    return None


def same(before: Contents, after: Contents) -> bool:
    """Return whether two contents have the same objects in the same order."""
    return _same(before[0], after[0]) and _same(before[1], after[1])


def differences(before: Contents, after: Contents) -> Iterable[tuple[object, object, object]]:
    """Yield keys with their old and new values, `GONE` if there is none."""
    old = {identity(key): value for key, value in zip(*before, strict=True)}
    for key, value in zip(*after, strict=True):
        was = old.pop(identity(key), GONE)
        if not _is_same(was, value):
            yield key, was, value
    keys = {identity(key): key for key in before[0]}
    for gone, value in old.items():
        yield keys[gone], value, GONE


def identity(key: object) -> object:
    """Return what stands for a key in a dictionary of ours, without hashing the user's object."""
    return key if type(key) in (str, int) else id(key)


def _same(before: list[object], after: list[object]) -> bool:
    return len(before) == len(after) and all(map(_is_same, before, after))


def _is_same(before: object, after: object) -> bool:
    # Bytes by value: those of an array are other ones at each reading.
    return before is after or (type(before) is bytes and type(after) is bytes and before == after)


def _base(target: object) -> Any:
    return list if issubclass(type(target), list) else collections.deque


def _members(target: object) -> dict[str, MemberDescriptorType]:
    """Return the descriptors of slots, by attribute."""
    members: dict[str, MemberDescriptorType] = {}
    for base in type.__dict__["__mro__"].__get__(type(target)):
        if "__slots__" in vars(base):
            for name, member in vars(base).items():
                if type(member) is MemberDescriptorType:
                    members.setdefault(name, member)
    return members


def _value(member: MemberDescriptorType, target: object) -> object:
    try:
        return member.__get__(target)
    except AttributeError:
        return GONE
