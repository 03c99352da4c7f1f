"""Meshes of devices, the context mesh, and arrays divided over one. Applies to JAX 0.8 to 0.12.

`jax.set_mesh`, `jax.sharding.use_abstract_mesh` and `get_abstract_mesh` are public in all of these;
`jax.sharding.get_mesh` is not in JAX 0.8, so that the private `mesh.get_concrete_mesh` is called;
`mesh.thread_resources` has the mesh of `with mesh:`.
`_jit_info` of `jax.jit`'s objects has `user_specified_in_shardings` in all of these.

What a jaxpr says about devices is here, too: its meshes, and the equations that communicate. The
names and parameters of primitives are no API of JAX's.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeGuard

import jax
from jax._src import mesh as mesh_internals
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from jaxsight.wire.meshes import Spec
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import open_jaxpr

AnyMesh = jax.sharding.Mesh | AbstractMesh

_TYPES = {"auto": AxisType.Auto, "explicit": AxisType.Explicit, "manual": AxisType.Manual}

# Bound now, as user code may replace them.
_spec: Callable[..., PartitionSpec] = PartitionSpec
_make_mesh: Callable[..., jax.sharding.Mesh] = jax.make_mesh
_set_mesh: Callable[[Any], AbstractContextManager[object]] = jax.set_mesh
_use_abstract: Callable[[Any], AbstractContextManager[object]] = jax.sharding.use_abstract_mesh
_abstract: Callable[[], AbstractMesh] = jax.sharding.get_abstract_mesh
_concrete: Callable[[], jax.sharding.Mesh | None] = mesh_internals.get_concrete_mesh


def is_mesh(value: object) -> TypeGuard[AnyMesh]:
    """Return whether a value is a mesh with axes."""
    return isinstance(value, AnyMesh) and not value.empty


def make(axes: Sequence[tuple[str, int]], types: Sequence[str]) -> jax.sharding.Mesh:
    """Return a mesh of the first devices; without `types`, all axes are automatic.

    Raises:
        ValueError: there are too few devices.
    """
    names, sizes = [name for name, _ in axes], tuple(size for _, size in axes)
    kinds = tuple(_TYPES[type] for type in types) or (AxisType.Auto,) * len(sizes)
    devices = jax.devices()[: math.prod(sizes)]
    return _make_mesh(sizes, names, axis_types=kinds, devices=devices)


def context() -> AnyMesh | None:
    """Return the mesh that the module has set, with its devices if they are known."""
    concrete = _concrete()
    if is_mesh(concrete):
        return concrete
    abstract = _abstract()
    return abstract if is_mesh(abstract) else None


def with_devices() -> jax.sharding.Mesh | None:
    """Return the mesh of the context with its devices: of `jax.set_mesh`, or of `with mesh:`."""
    for mesh in (_concrete(), mesh_internals.thread_resources.env.physical_mesh):
        if mesh is not None and not mesh.empty:
            return mesh
    return None


def entered(mesh: AnyMesh | None) -> AbstractContextManager[object]:
    """Make a mesh the context's, unless it is already, or there is none."""
    if mesh is None or mesh == context():
        return contextlib.nullcontext()
    return _use_abstract(mesh) if isinstance(mesh, AbstractMesh) else _set_mesh(mesh)


def sizes_of(mesh: AnyMesh) -> dict[str, int]:
    """Return the sizes of the axes by name."""
    return {str(name): int(size) for name, size in mesh.shape.items()}


def divided(struct: Any, mesh: AnyMesh, spec: Spec) -> Any:
    """Return an abstract array divided over axes of a mesh; replicated if `spec` is empty."""
    axes = (over[0] if len(over) == 1 else over or None for over in spec)
    return struct.update(sharding=NamedSharding(mesh, _spec(*axes)))


def on_devices(leaf: object, mesh: AnyMesh) -> object:
    """Return an abstract array on a mesh: with its devices if it has an equal one without any.

    An array without a sharding is replicated; other values are returned unchanged.
    """
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    struct: Any = leaf
    sharding: Any = struct.sharding
    if sharding is None:
        return divided(struct, mesh, ())
    is_named = isinstance(sharding, NamedSharding)
    if is_named and isinstance(mesh, jax.sharding.Mesh) and sharding.mesh == mesh.abstract_mesh:
        return struct.update(sharding=NamedSharding(mesh, sharding.spec))
    return leaf


def has_in_shardings(function: object) -> bool:
    """Return whether a function is a `jax.jit` object with `in_shardings`."""
    return bool(getattr(getattr(function, "_jit_info", None), "user_specified_in_shardings", False))


_COMMUNICATING = frozenset(
    {"psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant",
     "reduce_scatter", "all_to_all", "ppermute", "pbroadcast", "pgather", "ragged_all_to_all",
     "all_gather_reduced", "unreduced_psum", "unreduced_reduce_scatter", "psend", "precv",
     "collective_permute"}
)  # fmt: skip
"""Collectives of `jax.lax`."""


def communicates(equation: Equation) -> bool:
    """Return whether an equation is a collective.

    A constraint such as `reshard` is none: how it is met is the partitioner's decision.
    """
    return equation.primitive.name in _COMMUNICATING


def meshes_in(values: Iterable[object]) -> Iterator[AnyMesh]:
    """Yield the meshes with axes among some objects, and those of shardings."""
    for value in values:
        mesh = value.mesh if isinstance(value, jax.sharding.NamedSharding) else value
        if is_mesh(mesh):
            yield mesh


def meshes_of(jaxpr: object) -> Iterator[AnyMesh]:
    """Yield the meshes that the equations of a jaxpr name."""
    for _, equation in walk(jaxpr):
        for value in equation.params.values():
            yield from meshes_in(value if isinstance(value, tuple | list) else (value,))


def mesh_sizes(jaxpr: object) -> set[int]:
    """Return the numbers of devices of the meshes that a jaxpr and its inputs name."""
    inputs = (getattr(var.aval, "sharding", None) for var in open_jaxpr(jaxpr).invars)
    return {mesh.size for mesh in itertools.chain(meshes_in(inputs), meshes_of(jaxpr))}


def uses_several_devices(jaxpr: object) -> bool:
    """Return whether an equation of a jaxpr puts arrays on several devices, or constrains them."""
    all_params = (equation.params for _, equation in walk(jaxpr))
    placed = (params.get("devices", (params.get("sharding"),)) for params in all_params)
    targets = (target for each in placed if isinstance(each, tuple | list) for target in each)
    return any(isinstance(each, jax.sharding.Sharding) and each.num_devices > 1 for each in targets)
