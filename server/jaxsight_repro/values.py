"""Concrete arguments of a program, as plain data that is read without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxsight.wire.meshes import Mesh
from jaxsight_repro import meshes
from jaxsight_source.compat import avals


@dataclass(frozen=True, slots=True, eq=False)
class ConcreteValue:
    """An array, exactly.

    Attributes:
        data: its numbers; of a PRNG key, those of its data.
        kind: `python` is a number; `object`, of callbacks alone, any other: its class's name.
        weak: whether its type is weak.
        key: the name of a PRNG key's implementation, or empty.
        mesh: the mesh that it is distributed over.
        spec: the mesh axes of each of its dimensions, as its `PartitionSpec` has them.
        device: the position of its device in `jax.devices()`, if it is another than the first.
    """

    data: Any
    kind: Literal["jax", "numpy", "python", "object"] = "jax"
    weak: bool = False
    key: str = ""
    mesh: Mesh | None = None
    spec: tuple[object, ...] = ()
    device: int = 0


def value_of(argument: object) -> ConcreteValue:
    """Return the value of an argument. Wait until it is computed.

    Raises:
        TypeError: it is neither an array nor a number.
        RuntimeError: its buffer was deleted or donated.
    """
    if isinstance(argument, (bool, int, float, complex)):
        return ConcreteValue(argument, "python")
    if isinstance(argument, (np.ndarray, np.generic)):
        return ConcreteValue(np.array(argument), "numpy")
    if not isinstance(argument, jax.Array):
        raise TypeError(f"{type(argument).__name__} is not an array")
    mesh, spec = _distribution(argument)
    device = _device(argument)
    if avals.is_key(argument.aval):
        data = np.array(jax.random.key_data(argument))
        key = str(jax.random.key_impl(argument))
        return ConcreteValue(data, key=key, mesh=mesh, spec=spec, device=device)
    weak = bool(getattr(argument, "weak_type", False))
    return ConcreteValue(np.asarray(argument), weak=weak, mesh=mesh, spec=spec, device=device)


def _distribution(argument: jax.Array) -> tuple[Mesh | None, tuple[object, ...]]:
    sharding = argument.sharding
    if not isinstance(sharding, NamedSharding) or sharding.mesh.size == 1:
        return None, ()
    mesh = sharding.mesh
    assert isinstance(mesh, jax.sharding.Mesh)
    return meshes.mesh_of(mesh), tuple(sharding.spec)


def _device(argument: jax.Array) -> int:
    """Return the position of the device that an array was put on; 0 if it is on several."""
    devices = argument.devices()
    if len(devices) != 1 or not argument.committed:
        return 0
    present = jax.devices()
    (device,) = devices
    return present.index(device) if device in present else 0


def array_of(value: ConcreteValue) -> Any:
    """Return the argument that `value_of` took: an array on the devices of this process."""
    if value.kind != "jax":
        return value.data
    if value.key:
        array = jax.random.wrap_key_data(value.data, impl=value.key)
    elif value.weak:
        array = _weak(value.data)
    else:
        array = jax.numpy.asarray(value.data)
    if value.device:
        return jax.device_put(array, jax.devices()[value.device])
    if value.mesh is None:
        return array
    spec_of: Any = PartitionSpec
    return jax.device_put(array, NamedSharding(meshes.jax_mesh(value.mesh), spec_of(*value.spec)))


def _weak(data: np.ndarray) -> jax.Array:
    """Return an array of a weak type: what Python's numbers make."""
    number = data.reshape(-1)[0].item() if data.size else 0
    filled: jax.Array = jax.numpy.full(data.shape, number)
    if not getattr(filled, "weak_type", False) or not np.array_equal(filled, data):
        return jax.numpy.asarray(data)
    return filled


def has_nan(array: object) -> bool:
    """Return whether an array or a number has a NaN."""
    if avals.is_key(array):
        return False
    numbers = np.asarray(array)
    return bool(avals.is_subtype(numbers.dtype, np.inexact) and np.isnan(numbers).any())
