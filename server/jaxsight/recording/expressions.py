"""Values as Python expressions, where the notation has no form: dataclasses, functions, dtypes.

An expression reads the names of the function's module. Arrays in it are zeros of the same type.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.recording.notation import Meshes, Notation, UnwritableError, ValueWriter, scalar
from jaxsight.wire.meshes import MANUAL
from jaxsight_source.compat import avals

# The names by which code in a module can refer to a class, a function or another object.


class Reachable:
    """The globals of a module, as expressions read them."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.namespace = namespace

    def name_of(self, value: object) -> str | None:
        """Return an expression for this very object; `None` if the module has no name for it."""
        for name, own in tuple(self.namespace.items()):
            if own is value and name.isidentifier() and not name.startswith("__"):
                return name
        if isinstance(value, MethodType):
            holder = self.name_of(value.__self__)
            return f"{holder}.{value.__func__.__name__}" if holder is not None else None
        return next(self._in_modules(value), None)

    def module(self, name: str) -> str | None:
        """Return an expression for an imported module, by its full name; the shortest one."""
        found: list[str] = []
        for own, value in tuple(self.namespace.items()):
            if isinstance(value, ModuleType) and own.isidentifier():
                if value.__name__ == name:
                    found.append(own)
                elif name.startswith(f"{value.__name__}."):
                    path = name[len(value.__name__) + 1 :].split(".")
                    if getattr(_below(value, path), "__name__", "") == name:
                        found.append(".".join((own, *path)))
        return min(found, key=len, default=None)

    def _in_modules(self, value: object) -> Iterator[str]:
        """Yield the names of a class or function in the modules that the module imports."""
        qualname = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        home = getattr(value, "__module__", None)
        if not isinstance(qualname, str) or "<" in qualname:
            return
        within = qualname.split(".")
        for name, own in tuple(self.namespace.items()):
            if not name.isidentifier() or name.startswith("__"):
                continue
            is_holder = isinstance(own, type) and own.__name__ == within[0]
            if is_holder and len(within) > 1 and _below(own, within[1:]) is value:
                yield ".".join((name, *within[1:]))
            if not isinstance(own, ModuleType):
                continue
            inner: list[str] = []
            if isinstance(home, str) and home.startswith(f"{own.__name__}."):
                inner = home[len(own.__name__) + 1 :].split(".")
            for count in range(len(inner) + 1):
                path = [*inner[:count], *within]
                if not any(part.startswith("_") for part in path) and _below(own, path) is value:
                    yield ".".join((name, *path))


def _below(holder: object, path: list[str]) -> object:
    """Return what the attributes of modules and classes lead to, without running their code."""
    for part in path:
        try:
            holder = vars(holder)[part]
        except (TypeError, KeyError):
            return None
        if isinstance(holder, staticmethod):
            holder = holder.__func__
    return holder


_SELF = "self"
_NNX = "flax.nnx"

Built = Callable[[object, Reachable], str | None]
"""Returns the call that built an object, where it was observed."""


def not_built(value: object, names: Reachable) -> str | None:
    """Return `None`: no call that built an object was observed."""
    return None


class Expressions(ValueWriter):
    """Writes expressions for one module."""

    def __init__(self, names: Reachable, built: Built = not_built) -> None:
        self._names = names
        self._built = built

    def key(self, key: object) -> str:
        """Return a key, which is a literal."""
        return scalar(key)

    def other(self, value: Any, name: str, depth: int) -> str:
        """Return a literal, a name of the module, or the call that makes an object."""
        kind = type(value)
        if depth == 0 and name != _SELF and is_bound(value):
            raise UnwritableError("it is a Flax module that has its variables")
        if kind is float or kind is complex:
            # A number of the same type: in an expression, it is traced as jitted code has it.
            if type(value) is complex:
                return "0j"
            return scalar(value) if not scalar(value).startswith("~") else "0.0"
        if kind in (bool, int, str, type(None)):
            return scalar(value, name)
        if (own := self._names.name_of(value)) is not None:
            return own
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> str:
        """Return the call of its class that makes an object."""
        kind = type(value)
        if isinstance(value, MethodType):
            return f"{self.write(value.__self__, '', depth + 1)}.{value.__func__.__name__}"
        if isinstance(value, np.dtype):
            return f"{self._module('numpy', 'jax.numpy')}.dtype({value.name!r})"
        if isinstance(value, enum.Enum):
            return f"{self._class(kind)}.{value.name}"
        if (call := self._built(value, self._names)) is not None:
            return call
        if is_of(kind, _NNX, "State"):
            return f"{self._class(kind)}({self.write(_plain(value), '', depth + 1)})"
        if is_of(kind, _NNX, "Variable"):
            return f"{self._class(kind)}({self.write(value.raw_value, '', depth + 1)})"
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._call(kind, list(zip(kind._fields, value, strict=True)), depth)
        if dataclasses.is_dataclass(value):
            return self._call(kind, _fields(value), depth)
        if is_of(kind, _NNX, "Rngs"):
            return f"{self._class(kind)}(0)"
        if isinstance(value, dict) and kind.__init__ is dict.__init__:
            return f"{self._class(kind)}({self.write(dict(value), '', depth + 1)})"
        if is_of(kind, "flax.core", "FrozenDict"):
            return f"{self._class(kind)}({self.write(value.unfreeze(), '', depth + 1)})"
        if kind is functools.partial:
            raise UnwritableError("a `partial` has no form as example input")
        if kind.__init__ is object.__init__ and not getattr(value, "__dict__", {}):
            return f"{self._class(kind)}()"
        raise UnwritableError(f"`{kind.__qualname__}` has no form as example input")

    def _call(self, kind: type, fields: list[tuple[str, object]], depth: int) -> str:
        parts = []
        for field, part in fields:
            try:
                parts.append(f"{field}={self.write(part, field, depth + 1)}")
            except UnwritableError as error:
                raise UnwritableError(f"`{kind.__qualname__}.{field}`: {error}") from None
        return f"{self._class(kind)}({', '.join(parts)})"

    def _class(self, kind: type) -> str:
        if (name := self._names.name_of(kind)) is None:
            raise UnwritableError(f"its module does not import `{kind.__qualname__}`")
        return name

    def _module(self, *names: str) -> str:
        for name in names:
            if (own := self._names.module(name)) is not None:
                return own
        raise UnwritableError(f"its module does not import `{names[0]}`")

    def array(self, value: Any) -> str:
        """Return zeros of the same type."""
        if isinstance(value, np.ndarray | np.generic):
            shape, dtype = value.shape, value.dtype
            module = self._module("numpy", "jax.numpy")
            return f"{module}.zeros({_shape(shape)}, {dtype.name!r})"
        aval = avals.of(value)
        if shardings.sharding_of(value) is not None or shardings.traced(aval) is not None:
            raise UnwritableError("its arrays are divided over a mesh")
        if avals.is_key(aval):
            random = self._module("jax.random")
            tag = avals.text(aval).partition("<")[2].partition(">")[0]
            impl = {"fry": "", "rbg": ", impl='rbg'", "urbg": ", impl='unsafe_rbg'"}.get(tag)
            if impl is None:
                raise UnwritableError(f"its keys are `key<{tag}>`")
            key = f"{random}.key(0{impl})"
            return key if aval.shape == () else f"{random}.split({key}, {_shape(aval.shape)})"
        module = self._module("jax.numpy")
        if avals.weak(aval) and aval.shape == ():  # a number would be a constant of the program
            number = {"f": "0.0", "c": "0j"}.get(np.dtype(aval.dtype).kind, "0")
            return f"{module}.asarray({number})"
        return f"{module}.zeros({_shape(aval.shape)}, {np.dtype(aval.dtype).name!r})"


def _shape(shape: tuple[object, ...]) -> str:
    if not all(isinstance(size, int) for size in shape):
        raise UnwritableError("one of its sizes is no number")
    return repr(tuple(shape))


def _fields(value: Any) -> list[tuple[str, object]]:
    """Return the arguments that make an equal dataclass, without those that are its defaults.

    Raises:
        UnwritableError: its class makes it in another way.
    """
    kind = type(value)
    is_linen = is_of(kind, "flax.linen", "Module")
    made_by = getattr(kind.__init__, "__code__", None)
    if not is_linen and (made_by is None or made_by.co_filename != "<string>"):
        raise UnwritableError(f"`{kind.__qualname__}` has a constructor of its own")
    fields: list[tuple[str, object]] = []
    for field in dataclasses.fields(value):
        if is_linen and field.name in ("parent", "name"):
            continue
        try:
            own = object.__getattribute__(value, field.name)
        except AttributeError as error:
            message = f"`{kind.__qualname__}.{field.name}` is not set"
            raise UnwritableError(message) from error
        if not field.init:
            raise UnwritableError(f"`{kind.__qualname__}.{field.name}` is set by its class")
        if own is not field.default:
            fields.append((field.name, own))
    return fields


def _plain(state: Any) -> dict[object, object]:
    """Return a state of NNX as dicts of variables."""
    items = ((key, state[key]) for key in state)
    return {key: _plain(part) if is_of(type(part), _NNX, "State") else part for key, part in items}


def is_bound(value: object) -> bool:
    """Return whether a value is a module of Flax Linen that has variables.

    As `self`, it is written without them: the tracer initializes it for the other arguments.
    """
    return is_of(type(value), "flax.linen", "Module") and vars(value).get("scope") is not None


def is_of(kind: type, package: str, name: str) -> bool:
    """Return whether a class is, or inherits from, one of a library that may not be installed."""
    return any(
        base.__name__ == name and base.__module__.startswith(package) for base in kind.__mro__
    )


# The arguments of a call as the lines of an *Example inputs* section.

_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as text."""

    text: str
    """The lines of a section. Arguments that cannot be written have none."""
    unwritten: tuple[tuple[str, str], ...] = ()
    """These arguments, each with the reason."""


def write_call(
    arguments: Iterable[tuple[str, object]],
    namespace: Mapping[str, object],
    built: Built = not_built,
) -> WrittenCall:
    """Return the arguments of a call as text.

    Args:
        arguments: by parameter, in order: `*args` with a star as a tuple, `**kwargs` with two as a
            dict. Arrays may be concrete, traced or abstract.
        namespace: the globals of the function's module, which expressions read.
        built: returns the call that built an object, where it was observed.
    """
    expressions = Expressions(Reachable(namespace), built)
    lines: list[str] = []
    unwritten: list[tuple[str, str]] = []
    meshes = Meshes()
    notation = Notation(meshes)
    # The mesh that `jax.set_mesh` has put in effect.
    context = jax.sharding.get_abstract_mesh()
    if not context.empty:
        mesh = shardings.mesh(context)
        if MANUAL in mesh.types:
            raise UnwritableError("it is called inside a `shard_map`")
        meshes.take(mesh)
    for name, value in arguments:
        if name == _MESH and isinstance(value, jax.sharding.Mesh):
            meshes.take(shardings.mesh(value))
            continue
        try:
            lines.append(f"{name}: {notation.write(value, name)}")
            continue
        except UnwritableError as error:
            reason = str(error)
        try:
            if name.startswith("*"):
                raise UnwritableError(reason)
            lines.append(f"{name} = {expressions.write(value, name)}")
        except UnwritableError as error:
            unwritten.append((name, str(error)))
    if meshes.text:
        lines.insert(0, f"{_MESH}: {meshes.text}")
    return WrittenCall("\n".join(lines), tuple(unwritten))
