"""What running a chunk changed outside of its module, so that it can be undone, and done again without running it.

These effects shape what later code computes: options and contexts of JAX, the environment, the import path, the working folder,
warning filters, names replaced in `builtins` or in JAX's own namespaces. They belong to one file: every request starts from the
process's baseline, and each reused chunk brings its effects with its bindings. Nothing here may rely on user code being sane.
"""

from __future__ import annotations

import builtins
import itertools
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Protocol

import jax
import jax.nn
import jax.numpy
import jax.random

from jaxsight.tracer.compat import config, contexts, devices

Values = dict[str, object]

GONE = object()
"""Stands for a name that is no longer there."""

_environ, _path, _argv = os.environ, sys.path, sys.argv


class Part(Protocol):
    """One kind of state, as names and values."""

    def read(self) -> Values: ...

    def write(self, name: str, value: object) -> None:
        """Set the name; take it away when `value` is `GONE`."""

    def counts(self, before: object, after: object) -> bool:
        """Whether this change of one name is an effect."""


class Options:
    """`jax.config`."""

    def read(self) -> Values:
        return config.values()

    def write(self, name: str, value: object) -> None:
        if value is not GONE:
            config.update(name, value)

    def counts(self, before: object, after: object) -> bool:
        return True


class Contexts:
    """JAX's contexts of this thread, such as the mesh."""

    def read(self) -> Values:
        return contexts.values()

    def write(self, name: str, value: object) -> None:
        contexts.enter(name, value)

    def counts(self, before: object, after: object) -> bool:
        return True


class Environment:
    """`os.environ`."""

    def read(self) -> Values:
        return dict(_environ)

    def write(self, name: str, value: object) -> None:
        if value is GONE:
            _environ.pop(name, None)
        else:
            _environ[name] = str(value)

    def counts(self, before: object, after: object) -> bool:
        return True


class Interpreter:
    """Settings of the interpreter: import path, arguments, working folder, recursion limit, warning filters."""

    def read(self) -> Values:
        try:
            folder = str(Path.cwd())
        except FileNotFoundError:  # somebody removed it
            folder = ""
        return {
            "path": _items(sys.path),
            "argv": _items(sys.argv),
            "folder": folder,
            "recursion": sys.getrecursionlimit(),
            "filters": tuple(warnings.filters),
        }

    def write(self, name: str, value: object) -> None:
        match name, value:
            case "path", tuple():
                _path[:] = value
                sys.path = _path
            case "argv", tuple():
                _argv[:] = value
                sys.argv = _argv
            case "folder", str() if value and Path(value).is_dir():
                os.chdir(value)
            case "recursion", int():
                sys.setrecursionlimit(value)
            case "filters", tuple():
                warnings.filters[:] = value  # type: ignore[index]
                # Leaving the block is what makes modules forget which of their warnings were shown.
                with warnings.catch_warnings():
                    pass
            case _:
                pass

    def counts(self, before: object, after: object) -> bool:
        return True


class Attributes:
    """The names of a module that user code may have replaced. Submodules that importing adds are no effect."""

    def __init__(self, module: ModuleType) -> None:
        self._names = vars(module)

    def read(self) -> Values:
        return dict(self._names)

    def write(self, name: str, value: object) -> None:
        if value is GONE:
            self._names.pop(name, None)
        else:
            self._names[name] = value

    def counts(self, before: object, after: object) -> bool:
        added = after if before is GONE else before if after is GONE else None
        return not isinstance(added, ModuleType)


def _items(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else ()


OPTIONS = Options()
ENVIRONMENT = Environment()
PARTS: tuple[Part, ...] = (
    OPTIONS,
    Contexts(),
    ENVIRONMENT,
    Interpreter(),
    *map(Attributes, (builtins, jax, jax.numpy, jax.lax, jax.random, jax.nn)),
)

State = tuple[Values, ...]
"""The values of each of `PARTS`."""

_serials = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Effects:
    """Changes to each of `PARTS`. The serial tells the effects of one run of a chunk from those of all others."""

    changes: tuple[Values, ...]
    serial: int = field(default_factory=lambda: next(_serials))

    def same_as(self, other: Effects) -> bool:
        """Whether both make the same changes."""
        return _equal(self.changes, other.changes)

    def apply(self) -> None:
        """Make the same changes to the process as it is now."""
        for part, values in zip(PARTS, self.changes, strict=True):
            for name, value in values.items():
                part.write(name, value)


def capture() -> State:
    """The process's state as it is now."""
    return tuple(part.read() for part in PARTS)


def since(before: State) -> tuple[Effects | None, State]:
    """What has changed since `before` (`None` when nothing has), and the state now."""
    after = capture()
    changes = tuple(
        _changes(part, old, new) for part, old, new in zip(PARTS, before, after, strict=True)
    )
    return (Effects(changes) if any(changes) else None), after


def restore(state: State) -> None:
    """Bring the process back to `state`."""
    for part, now, then in zip(PARTS, capture(), state, strict=True):
        for name, value in _changes(part, now, then).items():
            part.write(name, value)


def heed_variables(before: State, jax_imported: bool) -> None:
    """Let JAX heed the variables set since `before`, as it would have, had it been imported (or its backend made) after that."""
    changed = _changes(ENVIRONMENT, before[PARTS.index(ENVIRONMENT)], ENVIRONMENT.read())
    for variable, text in changed.items():
        if not isinstance(text, str):
            continue
        if variable == "XLA_FLAGS":
            devices.heed_flags(text)
        elif not jax_imported and (option := config.from_variable(variable, text)):
            config.update(*option)


def _changes(part: Part, before: Mapping[str, object], after: Mapping[str, object]) -> Values:
    if _equal(before, after):
        return {}
    changed: Values = {}
    for name, value in after.items():
        old = before.get(name, GONE)
        if old is not value and not _equal(old, value) and part.counts(old, value):
            changed[name] = value
    for name, old in before.items():
        if name not in after and part.counts(old, GONE):
            changed[name] = GONE
    return changed


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays, and whatever user code defines as comparing
        return False
