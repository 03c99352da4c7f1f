"""Values as the notation of example inputs has them: arrays, keys, pytrees of built-in types.

No value of an array is written. Of Python's own values, those are that select what a program is:

* `None`, booleans and whole numbers;
* floats as somebody would write them (`3e-4`): one with more digits was computed, and is data, so
  only its type is written;
* short strings, such as `'train'` or an `einsum`'s, unless they look like a secret or a path.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.wire.meshes import EXPLICIT, MANUAL, Mesh, Spec, over
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import DType

LONGEST = 20_000
"""Characters of an example: a person reads fewer, and the file of a project stays small."""
DEEPEST = 30
"""Depth of an example; Python's parser and ours recurse, and pytrees are shallower."""

_MOST_DIGITS = 6
"""Significant digits of a float that somebody wrote: a float32 has as many (C's `FLT_DIG`), and
computed ones have more."""
_LARGEST = 2**63  # the integers that have a dtype
_PLAIN = re.compile(r"[\w ,.;:>()+*@=<\-]{0,40}", re.ASCII)
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])\w{16,}", re.ASCII)
"""A long word of letters and digits."""
_SECRET = re.compile(r"pass(word|wd|phrase)|secret|token$|api_?key|credential", re.IGNORECASE)
"""Names of parameters whose strings are never written."""


class UnwritableError(Exception):
    """A value has no form as example input. The message is a clause about it."""


class Meshes:
    """The meshes of the arrays that were written: an example set has one."""

    def __init__(self) -> None:
        self.found: Mesh | None = None

    def take(self, mesh: Mesh) -> None:
        """Note the mesh of an array.

        Raises:
            UnwritableError: there is another one.
        """
        mesh = Mesh(mesh.axes, mesh.types)
        if self.found is not None and self.found != mesh:
            raise UnwritableError("its arguments are on several meshes")
        self.found = mesh

    @property
    def text(self) -> str:
        """The axes with their types, as the line of a mesh has them."""
        if self.found is None:
            return ""
        types = self.found.types
        if EXPLICIT not in types:
            return self.found.text
        axes = zip(self.found.axes, types, strict=True)
        return ", ".join(f"{name}={size} {type}" for (name, size), type in axes)


def is_array(value: object) -> bool:
    """Return whether a value has a shape and a dtype that JAX can have."""
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct | jax.core.Tracer):
        return True
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSUMmV"


class ValueWriter(ABC):
    """Writes values as text: built-in containers as Python does, their parts as a subclass does."""

    def write(self, value: object, name: str = "", depth: int = 0) -> str:
        """Return a value as one line.

        Args:
            name: that of the parameter or the key.
            depth: the number of brackets around it.

        Raises:
            UnwritableError: it has no form.
        """
        if depth > DEEPEST:
            raise UnwritableError(f"it is nested more than {DEEPEST} levels deep")
        text = self.array(value) if is_array(value) else self._text(value, name, depth)
        if len(text) > LONGEST:
            raise UnwritableError(f"its example is longer than {LONGEST:,} characters")
        return text

    def _text(self, value: Any, name: str, depth: int) -> str:
        kind = type(value)
        if kind is dict:
            items = value.items()
            parts = [f"{self.key(k)}: {self.write(v, str(k), depth + 1)}" for k, v in items]
            return "{" + ", ".join(parts) + "}"
        if kind in (list, tuple):
            return bracketed(kind, [self.write(item, name, depth + 1) for item in value])
        return self.other(value, name, depth)

    @abstractmethod
    def array(self, value: Any) -> str:
        """Return an array."""

    @abstractmethod
    def key(self, key: object) -> str:
        """Return the key of an item."""

    @abstractmethod
    def other(self, value: Any, name: str, depth: int) -> str:
        """Return what is neither an array nor a built-in container."""


class Notation(ValueWriter):
    """Writes the notation of example inputs."""

    def __init__(self, meshes: Meshes) -> None:
        """Begin; `meshes` takes the meshes of arrays."""
        self._meshes = meshes

    def array(self, value: Any) -> str:
        """Return the type of an array."""
        if isinstance(value, np.ndarray | np.generic):
            dtype = jax.dtypes.canonicalize_dtype(value.dtype)
            return f"{_dtype(dtype)}[{_sizes(value.shape, ())}]"
        aval = avals.of(value)
        spec = _spec(value, aval, self._meshes)
        if avals.is_key(aval):
            head, _, _ = avals.text(aval).partition("[")
            if head not in ("key<fry>", "key<rbg>", "key<urbg>"):
                raise UnwritableError(f"its keys are `{head}`")
            return f"{head}[{_sizes(aval.shape, spec)}]"
        weak = "~" if avals.weak(aval) else ""
        memory = "<host>" if shardings.is_on_host(value) else ""
        return f"{weak}{_dtype(aval.dtype)}{memory}[{_sizes(aval.shape, spec)}]"

    def key(self, key: object) -> str:
        """Return a key, which selects what a program is."""
        if type(key) in (str, int, bool, type(None)):
            if type(key) is str and not _PLAIN.fullmatch(key.replace("/", "")):
                raise UnwritableError("one of its keys is not stored")
            return repr(key)
        if type(key) is tuple:
            return bracketed(tuple, list(map(self.key, key)))
        raise UnwritableError(f"a key of it is a `{type(key).__qualname__}`")

    def other(self, value: Any, name: str, depth: int) -> str:
        """Return a literal."""
        return scalar(value, name)


def bracketed(kind: type, parts: Sequence[str]) -> str:
    """Return a list or a tuple with these parts."""
    inside = ", ".join(parts)
    if kind is list:
        return f"[{inside}]"
    return f"({inside},)" if len(parts) == 1 else f"({inside})"


def scalar(value: object, name: str = "") -> str:
    """Return a Python value that is no container.

    Raises:
        UnwritableError: it has no literal, or its literal is not to be stored.
    """
    if value is None or value is True or value is False:
        return str(value)
    if type(value) is int and abs(value) < _LARGEST:
        return str(value)
    if type(value) is float:
        text = repr(value)
        return text if _is_written(text) else f"~{_default(float)}[]"
    if type(value) is complex:
        return f"~{_default(complex)}[]"
    if type(value) is str:
        if not _PLAIN.fullmatch(value) or _RANDOM.search(value) or _SECRET.search(name):
            raise UnwritableError("its string is not stored")
        return repr(value)
    raise UnwritableError(f"`{type(value).__qualname__}` has no form as example input")


def _is_written(number: str) -> bool:
    digits, _, _ = number.lstrip("-").partition("e")
    return number.lstrip("-")[0].isdigit() and len(digits.replace(".", "").strip("0")) <= (
        _MOST_DIGITS
    )


def _dtype(dtype: DType) -> str:
    if dtype == jax.dtypes.float0:
        raise UnwritableError("it is an array of `float0`")
    head, _, _ = avals.array_text(dtype, ()).partition("[")
    return head


def _default(kind: type) -> str:
    return _dtype(jax.dtypes.canonicalize_dtype(kind))


def _spec(value: object, aval: object, meshes: Meshes) -> Spec:
    """Return the mesh axes that each dimension is divided over."""
    sharding = shardings.sharding_of(value) or shardings.traced(aval)
    if sharding is None:
        return ()
    if MANUAL in sharding.mesh.types or sharding.varying or sharding.unreduced:
        raise UnwritableError("it is called inside a `shard_map`")
    meshes.take(sharding.mesh)
    return sharding.spec


def _sizes(shape: tuple[object, ...], spec: Spec) -> str:
    if not all(isinstance(size, int) for size in shape):
        raise UnwritableError("one of its sizes is no number")
    divided = spec or ((),) * len(shape)
    return ", ".join(f"{size}{over(axes)}" for size, axes in zip(shape, divided, strict=True))
