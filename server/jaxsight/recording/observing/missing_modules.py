"""Modules that are not installed, as objects that do nothing: the rest of a program can run.

Only the modules that `MISSING` names are replaced: the program ended without them before.
This module uses only the standard library.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterable, Iterator, MutableSequence
from types import FunctionType, ModuleType, TracebackType
from typing import Self

from jaxsight.recording.observing.log import Log


class Nothing:
    """What a missing module has: it can be called, read, entered and iterated, without effect."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith(("__", "_jax")):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *arguments: object, **named: object) -> object:
        """Return a function that it decorates, or nothing."""
        if len(arguments) == 1 and not named and isinstance(arguments[0], FunctionType | type):
            return arguments[0]
        return Nothing()

    def __getitem__(self, key: object) -> Nothing:
        return Nothing()

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __or__(self, other: object) -> Nothing:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


class _Module(ModuleType):
    __path__: MutableSequence[str] = []  # noqa: RUF012 - as of each package

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Iterable[str]) -> None:
        self._prefixes = tuple(f"{name}." for name in names)

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a missing module, or of one in it."""
        if not f"{fullname}.".startswith(self._prefixes):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module that does nothing."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing."""


def replace(names: Iterable[str]) -> None:
    """Let imports of missing modules succeed."""
    sys.meta_path.append(_Finder(names))


def watch(log: Log) -> None:
    """Log the module that is not found, if the program ends because of that."""
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            log.append({"missing": error.name})
        before(kind, error, traceback)

    sys.excepthook = hook
