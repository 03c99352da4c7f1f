"""Equations over meshes: with other meshes, fewer axes, or no mesh. Applies to JAX 0.8 to 0.12.

The names and parameters of collectives are no API of JAX's. Private API used: the variable of the
mesh of the context (`abstract_mesh_context_manager`, in `config` up to JAX 0.10), `core.pvary`,
`mesh.thread_resources`, and the axes over which a value varies (`vma`, from JAX 0.10 on
`manual_axis_type`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax._src import config, core
from jax._src import mesh as mesh_internals
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from jaxsight.meshes.compat.meshes import AnyMesh, is_mesh, meshes_in, sizes_of
from jaxsight_source.compat.equations import bind
from jaxsight_source.compat.inner import inner_jaxprs, replaced
from jaxsight_source.compat.jaxpr_types import Context, Equation, Params
from jaxsight_source.compat.parameters import shard_map
from jaxsight_source.compat.staging import open_jaxpr, with_inner

_TARGETS = {"sharding_constraint": "sharding", "reshard": "dst_sharding"}
"""Equations that only place their operands: the parameter with the sharding."""

_VARYING = frozenset({"pvary", "pbroadcast", "pcast"})
"""Equations that only let their operands vary over axes."""

_NO_MESH = AbstractMesh((), ())

_owner: Any = mesh_internals if hasattr(mesh_internals, "abstract_mesh_context_manager") else config
_context: Any = _owner.abstract_mesh_context_manager


def mesh_axes(equations: Sequence[Equation]) -> list[dict[str, int]]:
    """Return the sizes of the axes of the meshes that equations name, by name, at every level."""
    found: list[dict[str, int]] = []
    for equation in equations:
        for value in equation.params.values():
            listed = value if isinstance(value, tuple | list) else (value,)
            found += map(sizes_of, meshes_in(listed))
        for part in inner_jaxprs(equation):
            found += mesh_axes(part.jaxpr.eqns)
    return found


def placement(value: object) -> NamedSharding | None:
    """Return how an array is divided over a mesh, which has no devices then; None if it is not."""
    sharding = getattr(value, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.num_devices == 1:
        return None
    return NamedSharding(sharding.mesh.abstract_mesh, sharding.spec)


def divided(array: Any, over: NamedSharding | None) -> Any:
    """Return an array of a traced program with a placement."""
    if over is None:
        return array
    if AxisType.Explicit in over.mesh.axis_types:
        return jax.sharding.reshard(array, over)  # type: ignore[no-untyped-call]
    return lax.with_sharding_constraint(array, over)  # type: ignore[no-untyped-call]


def abstract(equation: Equation) -> Equation:
    """Return an equation whose meshes have no devices."""

    def without_devices(mesh: AnyMesh) -> AnyMesh:
        return mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh

    return _on(equation, without_devices, inside=True)


def concrete(equation: Equation) -> Equation:
    """Return an equation whose meshes have this process's first devices."""

    context = equation.params.get("context_mesh")

    def with_devices(mesh: AnyMesh) -> AnyMesh:
        if not isinstance(mesh, AbstractMesh) or mesh.manual_axes or mesh is context:
            return mesh
        devices = jax.devices()[: mesh.size]
        return jax.make_mesh(
            mesh.axis_sizes, mesh.axis_names, axis_types=mesh.axis_types, devices=devices
        )

    placed = _on(equation, with_devices, inside=False)
    if "concrete_mesh" in placed.params:  # of a `reshard`, whose sharding is a type
        of: Any = equation.params["dst_sharding"]
        params = {**equation.params, "concrete_mesh": with_devices(of.mesh)}
        placed = equation.replace(params=params)
    return placed


def _on(equation: Equation, change: Callable[[AnyMesh], AnyMesh], *, inside: bool) -> Equation:
    """Return an equation on other meshes; in a `shard_map` only if `inside`."""
    params = {name: _exchanged(value, change) for name, value in equation.params.items()}
    if inside or equation.primitive.name != "shard_map":
        params = replaced(
            params,
            lambda part: with_inner(
                part.value,
                part.jaxpr.replace(eqns=[_on(e, change, inside=inside) for e in part.jaxpr.eqns]),
            ),
        )
    return equation.replace(params=params)


def _exchanged(value: Any, change: Callable[[AnyMesh], AnyMesh]) -> Any:
    """Return a parameter with other meshes."""
    if is_mesh(value):
        return change(value)
    if isinstance(value, NamedSharding):
        mesh = change(value.mesh)
        gone = dict.fromkeys(set(value.mesh.axis_names).difference(mesh.axis_names), 0)
        spec = nonempty_spec(value.spec, gone)
        return None if mesh.empty else NamedSharding(mesh, spec, memory_kind=value.memory_kind)
    if type(value) in (tuple, list):
        return type(value)(_exchanged(each, change) for each in value)
    return value


def resized(mesh: AnyMesh, axes: Mapping[str, int]) -> AbstractMesh:
    """Return a mesh with other sizes of axes, without those of size 0."""
    kept = [
        (min(size, axes.get(name, size)), name, type)
        for (name, size), type in zip(sizes_of(mesh).items(), mesh.axis_types, strict=True)
        if axes.get(name, 1)
    ]
    if not kept:
        return _NO_MESH
    sizes, names, types = zip(*kept, strict=True)
    of = mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh
    return AbstractMesh(sizes, names, axis_types=types, abstract_device=of.abstract_device)


def nonempty_spec(spec: Any, axes: Mapping[str, int]) -> PartitionSpec:
    """Return a partition without the axes of size 0."""

    def kept(entry: Any) -> Any:
        if isinstance(entry, str):
            return entry if axes.get(entry, 1) else None
        if isinstance(entry, tuple):
            return tuple(name for name in entry if axes.get(name, 1)) or None
        return entry

    return PartitionSpec(*map(kept, spec))  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def equation_context(context: Context, axes: Mapping[str, int]) -> Iterator[None]:
    """Enter an equation's own context, with the current mesh, or its own with other axes.

    Types of arrays are without a mesh whose axes are all automatic.
    """
    current = jax.sharding.get_abstract_mesh()
    with context.manager:
        own = resized(jax.sharding.get_abstract_mesh(), axes)
        is_typed = any(type != AxisType.Auto for type in own.axis_types)
        mesh = current if not current.empty else own if is_typed else _NO_MESH
        previous = _context.swap_local(mesh)
        try:
            yield
        finally:
            _context.set_local(previous)


def shard_shapes(
    equation: Equation, axes: Mapping[str, int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, int]]]]:
    """Yield the shapes of what goes into and out of a `shard_map`, whole and of a shard.

    Of each axis, the third entry has the number of shards before and with other sizes of mesh axes.
    """
    mapped = shard_map(equation.params)
    old, new = sizes_of(mapped.mesh), sizes_of(resized(mapped.mesh, axes))
    inner = open_jaxpr(mapped.body)
    outer = (*equation.invars, *equation.outvars)
    shards = (*inner.invars, *inner.outvars)
    specs = (*mapped.in_specs, *mapped.out_specs)
    for whole, shard, spec in zip(outer, shards, specs, strict=True):
        entries = (*spec, *[None] * (len(whole.aval.shape) - len(spec)))
        over = [entry if isinstance(entry, tuple) else (entry,) for entry in entries]
        before, after = (
            [math.prod(sizes.get(name, 1) for name in names) for names in over]
            for sizes in (old, new)
        )
        yield whole.aval.shape, shard.aval.shape, list(zip(before, after, strict=True))


def call_mapped(
    equation: Equation,
    body: Callable[..., Sequence[object]],
    axes: Mapping[str, int],
    operands: Sequence[object],
) -> list[Any]:
    """Return the results of a `shard_map` with another body over a mesh with other axes."""
    mapped = shard_map(equation.params)
    mesh = resized(mapped.mesh, axes)
    manual = {name for name in mapped.manual if axes.get(name, 1)}
    if not manual:
        return list(body(*operands))
    function = jax.shard_map(
        lambda *shards: tuple(body(*shards)),
        mesh=mesh,
        in_specs=tuple(nonempty_spec(spec, axes) for spec in mapped.in_specs),
        out_specs=tuple(nonempty_spec(spec, axes) for spec in mapped.out_specs),
        axis_names=manual,
        check_vma=mapped.check_vma,
    )
    return list(function(*operands))  # type: ignore[no-untyped-call]


def call_resized(
    equation: Equation, params: Params, axes: Mapping[str, int], operands: Sequence[Any]
) -> list[Any]:
    """Return the results of an equation over meshes with other axes; of no `shard_map`."""
    params = _exchanged_params(params, axes)
    if "context_mesh" in params:
        current = jax.sharding.get_abstract_mesh()
        # As `with_sharding_constraint` chooses it (`jax/_src/pjit.py`).
        of_threads = mesh_internals.thread_resources.env.physical_mesh
        params["context_mesh"] = of_threads if current.empty else current
    parameter = "axes" if "axes" in params else "axis_name"
    named = params.get(parameter, ())
    listed = named if isinstance(named, tuple) else (named,)
    names = [name for name in listed if isinstance(name, str)]
    target = _TARGETS.get(equation.primitive.name)
    if target is not None and params[target] is None:
        return list(operands)
    if not names:
        alike = operands if any(inner_jaxprs(equation)) else _varying_alike(operands)
        return bind(equation.replace(params=params), alike)
    left = tuple(name for name in names if axes.get(name, 1))
    if equation.primitive.name in _VARYING:
        return list(_varying_alike(operands, left))
    if not left:
        return _alone(equation, operands)
    operands = _varying_alike(operands, left)
    if params.get("axis_index_groups") is not None:
        raise NotImplementedError("groups along an axis")
    size = math.prod(jax.sharding.get_abstract_mesh().shape[name] for name in left)
    params = {**params, parameter: left if isinstance(named, tuple) else left[0]}
    if "axis_size" in params:
        params["axis_size"] = size
    if "perm" in params:
        params["perm"] = tuple(pair for pair in params["perm"] if max(pair) < size)
    return bind(equation.replace(params=params), operands)


def varying(aval: object) -> frozenset[str]:
    """Return the manual axes over which a value varies."""
    manual: Any = getattr(aval, "manual_axis_type", None)
    return frozenset(getattr(aval, "vma", ()) if manual is None else manual.varying)


def _varying_alike(operands: Sequence[Any], axes: Sequence[str] = ()) -> Sequence[Any]:
    """Let all operands vary over the axes of any, as functions of `jax.lax` do, and over others."""
    if jax.sharding.get_abstract_mesh().empty:
        return operands
    each = [varying(jax.typeof(operand)) for operand in operands]
    every = frozenset(axes).union(*each)
    return [
        core.pvary(operand, tuple(sorted(every - own))) if every - own else operand  # type: ignore[no-untyped-call]
        for operand, own in zip(operands, each, strict=True)
    ]


def _exchanged_params(params: Params, axes: Mapping[str, int]) -> Params:
    return {
        name: _exchanged(value, lambda mesh: resized(mesh, axes)) for name, value in params.items()
    }


def _alone(equation: Equation, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a collective on a single device."""
    params = equation.params
    tiled = params.get("tiled", True)
    match equation.primitive.name:
        case "axis_index":
            return [jnp.int32(0)]
        case "all_gather" | "all_gather_invariant" if not tiled:
            return [lax.expand_dims(x, (params["all_gather_dimension"],)) for x in operands]
        case "reduce_scatter" if not tiled:
            return [lax.squeeze(x, (params["scatter_dimension"],)) for x in operands]
        case "all_to_all" if not tiled:
            split, concat = params["split_axis"], params["concat_axis"]
            return [lax.expand_dims(lax.squeeze(x, (split,)), (concat,)) for x in operands]
        case "ppermute" if (0, 0) not in params["perm"]:
            return [jnp.zeros_like(x) for x in operands]
    return list(operands)
