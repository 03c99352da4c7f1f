"""Tell calls apart cheaply: equal fingerprints are written alike, but for numbers of Python.

Nothing here runs code of the user's classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

DEEPEST = 30  # as of an example (`notation.py`)
_HOLDERS = ("flax.nnx.",)
"""Modules of libraries whose objects hold arrays, and are no dataclasses."""
MOST = 20_000
"""Maximum number of parts of an argument that are looked at: larger ones are not written, and a
program would wait for them at each call."""


class Fingerprints:
    """The fingerprints of the arguments of one call.

    `arrays`, `numpy_arrays` and `is_traced` say what they hold.
    """

    def __init__(self) -> None:
        self.arrays = 0
        self.numpy_arrays = 0
        self.is_traced = False
        self._parts = 0
        self._within: set[int] = set()

    def of(self, value: Any, depth: int = 0) -> object:
        """Return the fingerprint of an argument, which is hashable."""
        self._parts += 1
        kind = type(value)
        if depth > DEEPEST or self._parts > MOST:
            return kind
        if isinstance(value, jax.core.Tracer | jax.ShapeDtypeStruct):
            self.arrays += 1
            self.is_traced |= isinstance(value, jax.core.Tracer)
            return jax.typeof(value)
        if isinstance(value, jax.Array):
            self.arrays += 1
            return jax.typeof(value), value.sharding
        if isinstance(value, np.ndarray | np.generic):
            self.numpy_arrays += 1
            return value.dtype, value.shape
        if kind in (bool, str, type(None)):
            return kind, value
        if kind is dict:
            return dict, tuple((_key(key), self.of(part, depth + 1)) for key, part in value.items())
        if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return kind, tuple(self.of(part, depth + 1) for part in value)
        if dataclasses.is_dataclass(kind):
            own = getattr(value, "__dict__", {})
            return kind, tuple(self.of(part, depth + 1) for part in tuple(own.values()))
        if (held := self._held(value)) is not None:
            return kind, tuple(self.of(part, depth + 1) for part in held)
        if isinstance(value, type) or callable(value):
            return kind, id(value)
        return kind

    def _held(self, value: object) -> tuple[object, ...] | None:
        """Return the attributes of a module or variable of a library, once for each."""
        if not any(base.__module__.startswith(_HOLDERS) for base in type(value).__mro__):
            return None
        if id(value) in self._within:
            return ()
        self._within.add(id(value))
        own = getattr(value, "__dict__", {})
        held = tuple(own.values()) if type(own) is dict else ()
        if any(base.__name__ == "Variable" for base in type(value).__mro__):
            held = (getattr(value, "raw_value", None), *held)
        return held


def _key(key: object) -> Hashable:
    return key if type(key) in (str, int, bool, tuple) else type(key)
