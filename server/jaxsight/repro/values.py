"""Concrete arguments of a program, as plain data that is read without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxsight.interpreters.compat import dtypes


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An array, exactly.

    Attributes:
        data: its numbers; of a PRNG key, those of its data.
        kind: `jax`, `numpy` or `python` (a number).
        weak: whether its type is weak.
        key: the name of a PRNG key's implementation, or empty.
        axes: names and sizes of the axes of the mesh that it is distributed over.
        spec: the mesh axes of each of its dimensions.
    """

    data: Any
    kind: str = "jax"
    weak: bool = False
    key: str = ""
    axes: tuple[tuple[str, int], ...] = ()
    spec: tuple[Any, ...] = ()


def value_of(argument: object) -> Value:
    """Return the value of an argument. Wait until it is computed.

    Raises:
        TypeError: it is neither an array nor a number.
        RuntimeError: its buffer was deleted or donated.
    """
    if isinstance(argument, (bool, int, float, complex)):
        return Value(argument, "python")
    if isinstance(argument, (np.ndarray, np.generic)):
        return Value(np.array(argument), "numpy")
    if not isinstance(argument, jax.Array):
        raise TypeError(f"{type(argument).__name__} is not an array")
    axes, spec = _layout(argument)
    if dtypes.is_key(argument.aval):
        data = np.array(jax.random.key_data(argument))
        return Value(data, key=str(jax.random.key_impl(argument)), axes=axes, spec=spec)
    weak = bool(getattr(argument, "weak_type", False))
    return Value(np.asarray(argument), weak=weak, axes=axes, spec=spec)


def _layout(argument: jax.Array) -> tuple[tuple[tuple[str, int], ...], tuple[Any, ...]]:
    sharding = argument.sharding
    if not isinstance(sharding, NamedSharding) or sharding.mesh.size == 1:
        return (), ()
    return tuple(sharding.mesh.shape.items()), tuple(sharding.spec)


def array_of(value: Value) -> Any:
    """Return the argument that `value_of` took: an array on the devices of this process."""
    if value.kind != "jax":
        return value.data
    if value.key:
        array = jax.random.wrap_key_data(value.data, impl=value.key)
    elif value.weak:
        array = _weak(value.data)
    else:
        array = jax.numpy.asarray(value.data)
    if not value.axes:
        return array
    names, sizes = zip(*value.axes, strict=True)
    mesh = jax.make_mesh(sizes, names)
    spec_of: Any = PartitionSpec
    return jax.device_put(array, NamedSharding(mesh, spec_of(*value.spec)))


def _weak(data: Any) -> jax.Array:
    """Return an array of a weak type: what Python's numbers make."""
    number = data.reshape(-1)[0].item() if data.size else 0
    filled: jax.Array = jax.numpy.full(data.shape, number)
    if not getattr(filled, "weak_type", False) or not np.array_equal(filled, data):
        return jax.numpy.asarray(data)
    return filled


def has_nan(array: Any) -> bool:
    """Return whether an array or a number has a NaN."""
    if dtypes.is_key(array):
        return False
    numbers = np.asarray(array)
    return bool(dtypes.is_subtype(numbers.dtype, np.inexact) and np.isnan(numbers).any())
