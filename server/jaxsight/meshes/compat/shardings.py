"""Shardings of JAX as plain data, and types as text with them. Applies to JAX 0.8 to 0.12.

JAX traces the shardings of explicit axes, and which manual axes a value varies over; both are part
of an abstract value. The sharding over automatic axes is known for arrays and arguments only.
Private API used: `ShapedArray.sharding`, and `vma` (0.8, 0.9) or `mat` (since 0.10); the
`PjitInfo` of jitted functions, `tree_util.broadcast_prefix`; `ShapedArray.memory_space`, which is
that of a traced array, and since 0.12 `ShapeDtypeStruct(_memory_space=…)`. In 0.8 to 0.10 a
`ShapeDtypeStruct` in the host's memory is lowered as an array there, but traced with a type of the
device, as by JAX itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import jax
from jax._src import tree_util
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxsight.wire.meshes import AUTO, EXPLICIT, MANUAL, Mesh, Sharding, Spec, over
from jaxsight_source.compat import avals

_TYPES = {AxisType.Auto: AUTO, AxisType.Explicit: EXPLICIT, AxisType.Manual: MANUAL}
_SIZES = re.compile(r"\[[^\[\]]*\]")
_UNNAMED = re.compile(r"<|_internal_pmap_axis_name$")
"""The axis of a `pmap` without a name."""


def mesh(of: jax.sharding.Mesh | jax.sharding.AbstractMesh) -> Mesh:
    """Return a mesh of JAX as plain data."""
    axes = tuple((str(name), int(size)) for name, size in of.shape.items())
    types = tuple(_TYPES[type] for type in of.axis_types)
    devices: tuple[int, ...] = ()
    if isinstance(of, jax.sharding.Mesh):
        devices = tuple(device.id for device in of.devices.flat)
        if devices == tuple(range(len(devices))):
            devices = ()
    return Mesh(axes, types if set(types) != {AUTO} else (), devices)


def traced(aval: object) -> Sharding | None:
    """Return the sharding that an aval has by its type.

    Return `None` if it is the same on all devices of its mesh, or has no mesh.
    """
    sharding: Any = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return None
    of = mesh(sharding.mesh)
    partitions = _partitions(sharding.spec, len(sharding.spec))
    varying, unreduced = _over_manual_axes(aval)
    unreduced |= frozenset(getattr(sharding.spec, "unreduced", None) or ())
    if not any(partitions) and not unreduced and MANUAL not in of.types:
        return None
    return Sharding(of, partitions, varying=of.ordered(varying), unreduced=of.ordered(unreduced))


def explicit_like(struct: jax.ShapeDtypeStruct, aval: jax.core.ShapedArray) -> object:
    """Return an abstract array with the sharding that an aval has by its type, unless manual."""
    of = traced(aval)
    is_explicit = of is not None and MANUAL not in of.mesh.types
    return _placed(struct, aval.sharding) if is_explicit else struct


def placement(value: object) -> Sharding | None:
    """Return how an array is distributed over automatic axes.

    Return `None` if it is the same on all devices, or if its type has its sharding.
    """
    sharding = sharding_of(value)
    is_typed = sharding is not None and EXPLICIT in sharding.mesh.types
    return None if is_typed and traced(jax.typeof(value)) is not None else sharding


def sharding_of(value: object) -> Sharding | None:
    """Return the sharding of an array or an argument; `None` if it is the same on all devices."""
    if isinstance(value, jax.core.Tracer):
        return None
    sharding: Any = getattr(value, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return None
    partitions = _partitions(sharding.spec, len(getattr(value, "shape", ())))
    return Sharding(mesh(sharding.mesh), partitions, is_given=True) if any(partitions) else None


def text(value: object) -> str:
    """Return the type of an array, a tracer or a `ShapeDtypeStruct`, with its sharding."""
    placed = placement(value)
    is_struct = isinstance(value, jax.ShapeDtypeStruct) and value.sharding is not None
    aval = jax.typeof(value) if is_struct else avals.of(value)
    return with_placement(avals.text(aval), placed)


def with_placement(text: str, sharding: Sharding | None) -> str:
    """Return the text of a type with a sharding, in the notation of jaxprs: `f32[8@data,16]`."""
    match = _SIZES.search(text)
    if sharding is None or match is None:
        return text
    sizes = match[0][1:-1].split(",")
    shown = (
        f"{size}{over(axes)}" for size, axes in zip(sizes, sharding.spec, strict=False) if size
    )
    return f"{text[: match.start()]}[{','.join(shown)}]{text[match.end() :]}"


def declared(function: object, args: tuple[object, ...]) -> tuple[object, ...]:
    """Return positional arguments with the `in_shardings` of a jitted function.

    Abstract arrays that have a sharding keep it.
    """
    info: Any = getattr(function, "_jit_info", None)
    if info is None or not info.user_specified_in_shardings:
        return args
    positions = [at for at in range(len(args)) if at not in (info.static_argnums or ())]
    dynamic = tuple(args[at] for at in positions)
    placed = _declared(info.in_shardings_treedef, info.in_shardings_leaves, dynamic)
    by_position = dict(zip(positions, placed, strict=True))
    return tuple(by_position.get(at, arg) for at, arg in enumerate(args))


def declared_results(function: object, results: Any) -> Any:
    """Return abstract results with the `out_shardings` of a jitted function."""
    info: Any = getattr(function, "_jit_info", None)
    if info is None:
        return results
    return _declared(info.out_shardings_treedef, info.out_shardings_leaves, results)


def _declared(structure: Any, shardings: tuple[object, ...], value: Any) -> Any:
    """Return a tree of abstract arrays with the shardings of a prefix of the tree."""
    if not any(isinstance(leaf, NamedSharding | PartitionSpec) for leaf in shardings):
        return value
    prefix = jax.tree_util.tree_unflatten(structure, shardings)
    try:
        specs = tree_util.broadcast_prefix(prefix, value, is_leaf=_is_none)
        leaves, whole = jax.tree_util.tree_flatten(value, is_leaf=_is_none)
        return jax.tree_util.tree_unflatten(whole, map(_placed, leaves, specs))
    except Exception:  # noqa: BLE001 - user code, or they do not fit the tree, and JAX says so
        return value


def _is_none(part: object) -> bool:
    return part is None


def _placed(leaf: Any, sharding: object) -> object:
    if isinstance(sharding, PartitionSpec):
        current = jax.sharding.get_abstract_mesh()
        sharding = NamedSharding(current, sharding) if not current.empty else None
    if not isinstance(sharding, NamedSharding):
        return leaf
    if isinstance(leaf, jax.core.ShapedArray) and traced(leaf) is None:
        leaf = avals.struct(leaf.shape, leaf.dtype, avals.weak(leaf))
    if not isinstance(leaf, jax.ShapeDtypeStruct) or leaf.sharding is not None:
        return leaf
    struct: Any = leaf
    return struct.update(sharding=sharding)


def manual_axes(inputs: Iterable[object]) -> tuple[str, ...]:
    """Return the names of the manual axes of the first of these avals that has a mesh."""
    for aval in inputs:
        of: Any = getattr(getattr(aval, "sharding", None), "mesh", None)
        if of is not None and not of.empty:
            return named(of.manual_axes)
    return ()


def named(axes: Iterable[object]) -> tuple[str, ...]:
    """Return the names of axes that the program gave a name."""
    return tuple(axis for axis in map(str, axes) if not _UNNAMED.match(axis))


def _partitions(spec: Any, rank: int) -> Spec:
    """Return the mesh axes of each dimension; a spec may have less entries than dimensions."""
    entries = tuple(getattr(spec, "partitions", spec))
    parts = tuple(map(_axes, entries))
    return parts + ((),) * (rank - len(parts))


def _axes(entry: object) -> tuple[str, ...]:
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(map(str, entry)) if isinstance(entry, tuple) else (str(entry),)


def _over_manual_axes(aval: object) -> tuple[frozenset[str], frozenset[str]]:
    """Return the manual axes that a value varies over, and those that it is not summed over yet."""
    kind: Any = getattr(aval, "mat", None)
    if kind is None:
        return frozenset(getattr(aval, "vma", None) or ()), frozenset()
    return frozenset(kind.varying), frozenset(kind.unreduced)


_PINNED = "pinned_host"
"""The memory kind. XLA compiles arguments of the kind `unpinned_host` as those of the device."""

_HAS_SPACE = "_memory_space" in inspect.signature(jax.ShapeDtypeStruct.__init__).parameters


def is_on_host(value: object) -> bool:
    """Return whether an array, a tracer or a `ShapeDtypeStruct` is in the host's pinned memory."""
    if isinstance(value, jax.core.Tracer):
        return str(getattr(value.aval, "memory_space", "")).endswith("Host")
    if not isinstance(value, jax.Array | jax.ShapeDtypeStruct):
        return False
    return getattr(value.sharding, "memory_kind", None) == _PINNED


def on_host(struct: Any) -> Any:
    """Return a `ShapeDtypeStruct` in the host's pinned memory, on the same devices."""
    sharding = struct.sharding
    if sharding is None:
        device = jax.local_devices(backend="cpu")[0]
        sharding = jax.sharding.SingleDeviceSharding(device)
    sharding = sharding.with_memory_kind(_PINNED)
    if not _HAS_SPACE:
        return struct.update(sharding=sharding)
    return struct.update(sharding=sharding, _memory_space=jax.memory.Space.Host)
