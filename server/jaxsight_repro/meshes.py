"""Meshes as plain data, which is read before there are devices, and as expressions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import jax
import numpy as np
from jax.sharding import AxisType

from jaxsight.meshes.compat import meshes
from jaxsight.wire.meshes import Mesh
from jaxsight_source.text.layout import flat
from jaxsight_source.values import spelling


def mesh_of(mesh: jax.sharding.Mesh) -> Mesh:
    """Return a mesh as data; its devices are positions in `jax.devices()`.

    Raises:
        ValueError: it has a device of another backend.
    """
    positions = {device: position for position, device in enumerate(jax.devices())}
    try:
        devices = tuple(positions[device] for device in mesh.devices.flat)
    except KeyError:
        raise ValueError(f"{mesh} has devices of another backend") from None
    axes = tuple((str(name), int(size)) for name, size in mesh.shape.items())
    return Mesh(axes, tuple(type.name.lower() for type in mesh.axis_types), devices)


def current() -> Mesh | None:
    """Return the mesh of the context, such as that of `jax.set_mesh`."""
    mesh = meshes.with_devices()
    return None if mesh is None else mesh_of(mesh)


def jax_mesh(mesh: Mesh) -> jax.sharding.Mesh:
    """Return a mesh of data, of the devices of this process.

    Raises:
        ValueError: it has more devices than there are.
    """
    present = jax.devices()
    positions = mesh.devices or tuple(range(mesh.size))
    if max(positions, default=0) >= len(present):
        raise ValueError(f"a mesh needs {max(positions) + 1} devices, there are {len(present)}")
    devices = np.array([present[position] for position in positions])
    sizes, names = _shape(mesh)
    return jax.sharding.Mesh(devices.reshape(sizes), names, axis_types=_types(mesh))


def entered(mesh: Mesh | None) -> AbstractContextManager[object]:
    """Make a mesh the context's, if there is one."""
    return nullcontext() if mesh is None else jax.set_mesh(jax_mesh(mesh))


def text(mesh: Mesh) -> str:
    """Return the expression of a mesh."""
    concrete = jax_mesh(mesh)
    sizes, names = _shape(mesh)
    types = _types(mesh)
    if concrete.size > 1 and jax.make_mesh(sizes, names, axis_types=types) == concrete:
        kinds = flat(spelling.value(types))
        if len(set(types)) == 1 and len(types) > 1:
            kinds = f"({flat(spelling.value(types[0]))},) * {len(types)}"
        return f"jax.make_mesh({sizes!r}, {flat(spelling.value(names))}, axis_types={kinds})"
    return flat(spelling.value(concrete))


def _shape(mesh: Mesh) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return tuple(size for _, size in mesh.axes), tuple(name for name, _ in mesh.axes)


def _types(mesh: Mesh) -> tuple[AxisType, ...]:
    by_name = {type.name.lower(): type for type in AxisType}
    return tuple(by_name[name] for name in mesh.types) or (AxisType.Auto,) * len(mesh.axes)
