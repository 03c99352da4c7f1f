"""Pickle primitives with their parameters: jaxprs, meshes, shardings, effects.

Applies to JAX 0.8 to 0.12, whose jaxprs consist of plain classes that Python can pickle. The
exceptions are handled here: what JAX has once, such as primitives (by name), devices (by number),
arrays (as NumPy's, unless they are distributed), source information (dropped), and functions that
cannot be imported (rules of `custom_jvp` and `custom_vjp`), which become a `Missing`. Callbacks are
pickled by the names of their functions (`host_callbacks`).
The data is read by the same JAX again.

Private API used: `core.Primitive`, `core.JaxprEqnContext`, `source_info_util`, `KeyTy._impl`.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import api_util, core, source_info_util
from jax._src import linear_util as lu

from jaxsight_repro.compat import host_callbacks
from jaxsight_repro.values import ConcreteValue, array_of, value_of
from jaxsight_source.compat import avals

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinMethodType)


class MissingFunction:
    """Takes the place of a function that cannot be pickled; raises if it is called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> object:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(f"the function {self.name} was not captured")


def dumps(*values: object) -> bytes:
    """Return values in bytes. Raise `pickle.PicklingError` or `TypeError` if one has none."""
    buffer = io.BytesIO()
    for value in values:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def load_all(data: bytes) -> Iterator[Any]:
    """Yield the values that `dumps` wrote in this environment.

    Raises:
        pickle.UnpicklingError: a value cannot be read here, such as a device that is not present.
    """
    buffer = io.BytesIO(data)
    while buffer.tell() < len(data):
        yield pickle.load(buffer)


def module_of(primitive: object) -> str:
    """Return the module that defines a primitive, or an empty text if none does."""
    place = _place(primitive)
    return "" if place is None else place[0]


def has_missing(data: bytes) -> bool:
    """Return whether a function could not be pickled."""
    return MissingFunction.__name__.encode() in data


def needs_devices(data: bytes) -> bool:
    """Return whether reading uses devices: values have some, or are arrays of JAX's."""
    names = (each.__name__.encode() for each in (_device, array_of))
    return any(pickle.SHORT_BINUNICODE + bytes([len(name)]) + name in data for name in names)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        place = _place(value)
        if place is not None:
            return _at, place
        if isinstance(value, core.Primitive):
            raise pickle.PicklingError(f"the primitive {value.name} cannot be imported")
        if isinstance(value, source_info_util.SourceInfo):
            return source_info_util.new_source_info, ()
        if isinstance(value, core.JaxprEqnContext):
            slots: Sequence[str] = getattr(type(value), "__slots__")  # noqa: B009 - of all versions
            fields = [name for name in slots if not name.startswith("__") and hasattr(value, name)]
            return _context, (type(value), {name: getattr(value, name) for name in fields})
        if isinstance(value, jax.Array):
            return _reduced_array(value)
        if type(value).__name__ == "TypedNdArray":  # JAX's own loses its type when it is pickled
            return np.array, (np.asarray(value),)
        if type(value).__name__ == "PRNGImpl":
            return _prng_implementation, (getattr(value, "name"),)  # noqa: B009 - a private class
        if isinstance(value, jax.Device):
            return _device, (value.platform, value.id)
        made = host_callbacks.reduced(value)
        if made is not None:
            return made
        if isinstance(value, lu.WrappedFun):
            return _wrapped, (MissingFunction(getattr(value, "__name__", "") or "function"),)
        if isinstance(value, _FUNCTIONS) and not _is_importable(value):
            return MissingFunction, (getattr(value, "__qualname__", "") or "function",)
        if isinstance(value, functools.partial) and not _is_importable(value.func):
            return MissingFunction, (getattr(value.func, "__qualname__", "") or "function",)
        if isinstance(value, (types.ModuleType, types.TracebackType, types.FrameType)):
            return MissingFunction, (type(value).__name__,)
        return NotImplemented


def _reduced_array(value: jax.Array) -> tuple[Callable[..., object], tuple[object, ...]]:
    if avals.is_key(value.aval):
        data, implementation = jax.random.key_data(value), jax.random.key_impl(value)
        return array_of, (ConcreteValue(np.asarray(data), key=str(implementation)),)
    distributed = value_of(value)
    if distributed.mesh is not None or distributed.device:
        return array_of, (distributed,)
    return np.array, (distributed.data,)


def _prng_implementation(name: str) -> object:
    """Return an implementation through the type of its keys; its module moved in JAX 0.10."""
    key_type: Any = jax.eval_shape(lambda: jax.random.key(0, impl=name)).dtype
    return key_type._impl


def _wrapped(missing: MissingFunction) -> lu.WrappedFun:
    """Return a function as parameters of `custom_jvp` have it."""
    info = api_util.debug_info("custom_jvp", missing, (), {})
    return lu.wrap_init(missing, debug_info=info)


def _device(platform: str, number: int) -> object:
    for device in jax.devices(platform):
        if device.id == number:
            return device
    raise pickle.UnpicklingError(f"there is no device {platform}:{number} here")


def _is_importable(function: object) -> bool:
    """Return whether pickle finds a function by its module and name."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    place: object = module
    if module is None or function.__module__ == "__main__":
        return False
    for part in getattr(function, "__qualname__", "<>").split("."):
        place = getattr(place, part, None)
    return place is function


def _place(value: object) -> tuple[str, str] | None:
    """Return module and name of a primitive, or of another object of JAX that exists once."""
    if isinstance(value, core.Primitive) and id(value) not in _places():
        _places.cache_clear()
    place = _places().get(id(value))
    if place is None or getattr(sys.modules.get(place[0]), place[1], None) is not value:
        return None  # what had this id is gone
    return place


@functools.cache
def _places() -> dict[int, tuple[str, str]]:
    """Return module and name of what modules define, by id; JAX's own modules come first."""
    places: dict[int, tuple[str, str]] = {}
    modules = sorted(sys.modules.items(), key=lambda item: not item[0].startswith("jax"))
    for name, module in modules:
        if name == "__main__":
            continue
        is_jax = name.partition(".")[0] == "jax"
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            # An instance of a class of JAX, such as `UNSPECIFIED`.
            is_instance = not isinstance(value, (type, *_FUNCTIONS))
            is_single = is_jax and is_instance and type(value).__module__.startswith("jax.")
            if is_single or isinstance(value, core.Primitive):
                places.setdefault(id(value), (name, attribute))
    return places


def _at(module: str, attribute: str) -> object:
    importlib.import_module(module)
    return getattr(sys.modules[module], attribute)


def _context(cls: type, fields: dict[str, Any]) -> object:
    create: Callable[..., object] | None = getattr(cls, "_create", None)
    if create is None:
        context: object = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(context, name, value)
        return context
    metadata = fields.get("xla_metadata")
    fields["xla_metadata"] = None if metadata is None else tuple(sorted(metadata.items()))
    return create(**fields)
