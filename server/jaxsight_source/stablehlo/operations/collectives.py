"""Programs over several devices: `shard_map`, shardings and collectives."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec

from jaxsight_source.stablehlo.evaluation import READERS, Array, Mesh, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations import elementwise  # noqa: F401 - it has readers that are wrapped below
from jaxsight_source.stablehlo.operations.regions import MONOIDS, constant_of, single_operation
from jaxsight_source.stablehlo.program import UnreadableProgram

_SHARDING = re.compile(r"<@(?P<mesh>[\w.]+), \[(?P<dimensions>[^\]]*)\]")


def _mesh(step: OperationStep, name: str) -> Mesh:
    found = step.evaluation.meshes.get(name)
    if found is None:
        raise UnreadableProgram(f"expected a mesh @{name} with named axes")
    return found


def _concrete(mesh: Mesh) -> jax.sharding.Mesh | jax.sharding.AbstractMesh:
    """Return a mesh of the devices that there are, or without devices if they do not suffice."""
    types = (AxisType.Auto,) * len(mesh)
    sizes, names = tuple(mesh.values()), tuple(mesh)
    if math.prod(sizes) <= jax.device_count():
        return jax.make_mesh(sizes, names, axis_types=types)
    return jax.sharding.AbstractMesh(sizes, names, axis_types=types)


def _specs(text: str) -> list[tuple[str, PartitionSpec]]:
    """Return the mesh and the axes of each dimension, for each sharding in an attribute's text."""
    found = []
    for sharding in _SHARDING.finditer(text):
        axes = [
            tuple(re.findall(r'"([^"]*)"', dimension))
            for dimension in re.findall(r"\{([^}]*)\}", sharding["dimensions"])
        ]
        if '":(' in sharding["dimensions"]:
            raise UnreadableProgram("expected whole axes of a mesh, got a part of one")
        entries = [None if not names else names if names[1:] else names[0] for names in axes]
        found.append((sharding["mesh"], PartitionSpec(*entries)))
    return found


@reads("sdy.manual_computation")
def manual_computation(step: OperationStep) -> Results:
    inputs = _specs(str(step.attribute("in_shardings")))
    outputs = _specs(str(step.attribute("out_shardings")))
    if not inputs and not outputs:
        raise UnreadableProgram("expected an operand or a result with a sharding")
    mesh = _mesh(step, (inputs or outputs)[0][0])
    manual = re.findall(r'"([^"]*)"', str(step.attribute("manual_axes")))
    run = step.region(0)
    outside, step.evaluation.mesh = step.evaluation.mesh, mesh
    try:
        return jax.shard_map(
            run,
            mesh=_concrete(mesh),
            in_specs=tuple(_only(spec, manual) for _, spec in inputs),
            out_specs=tuple(_only(spec, manual) for _, spec in outputs),
            axis_names=set(manual),
            check_vma=False,
        )(*step.operands)
    finally:
        step.evaluation.mesh = outside


def _only(spec: PartitionSpec, manual: list[str]) -> PartitionSpec:
    """Return a spec without the axes that the body does not see."""
    entries = []
    for entry in spec:
        names = entry if isinstance(entry, tuple) else () if entry is None else (entry,)
        kept = tuple(name for name in names if name in manual)
        entries.append(None if not kept else kept if kept[1:] else kept[0])
    return PartitionSpec(*entries)


@reads("sdy.sharding_constraint")
def sharding_constraint(step: OperationStep) -> Array:
    (name, spec), *_ = _specs(str(step.attribute("sharding"))) or [("", PartitionSpec())]
    mesh = _concrete(_mesh(step, name))
    if isinstance(mesh, jax.sharding.AbstractMesh):
        devices = math.prod(mesh.axis_sizes)
        raise UnreadableProgram(f"expected {devices} devices, found {jax.device_count()}")
    return lax.with_sharding_constraint(step.operand, jax.NamedSharding(mesh, spec))


def _axes(step: OperationStep) -> tuple[str, ...]:
    """Return the axes over which a collective communicates."""
    mesh = step.evaluation.mesh
    told = str(step.attribute("replica_groups"))
    if "mesh_axes" in told:
        axes = tuple(re.findall(r'axis_ref<name = "([^"]*)">', told))
        if axes and len(axes) == told.count("axis_ref<") and mesh.keys() >= {*axes}:
            return axes
        raise UnreadableProgram("expected groups of devices along axes of a mesh")
    groups = np.array(step.attribute("replica_groups"))
    devices = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    for count in range(1, len(mesh) + 1):
        for chosen in itertools.permutations(mesh, count):
            along = [list(mesh).index(name) for name in chosen]
            rest = [axis for axis in range(len(mesh)) if axis not in along]
            size = math.prod(devices.shape[axis] for axis in along)
            if np.array_equal(devices.transpose(*rest, *along).reshape(-1, size), groups):
                return chosen
    raise UnreadableProgram("expected groups of devices along axes of a mesh")


def _axis(step: OperationStep) -> str | tuple[str, ...]:
    axes = _axes(step)
    return axes if len(axes) > 1 else axes[0]


@reads("stablehlo.all_reduce")
def all_reduce(step: OperationStep) -> Results:
    name = MONOIDS.get(single_operation(step.block(0)))
    if name not in ("sum", "max", "min"):
        raise UnreadableProgram("expected a sum, a maximum or a minimum over devices")
    axis = _axis(step)
    return [getattr(lax, f"p{name}")(operand, axis) for operand in step.operands]


@reads("stablehlo.all_gather")
def all_gather(step: OperationStep) -> Results:
    axis, dimension = _axis(step), step.integer("all_gather_dim")
    return [lax.all_gather(operand, axis, axis=dimension, tiled=True) for operand in step.operands]


@reads("stablehlo.reduce_scatter")
def reduce_scatter(step: OperationStep) -> Array:
    if single_operation(step.block(0)) != "stablehlo.add":
        raise UnreadableProgram("expected a sum over devices")
    dimension = step.integer("scatter_dimension")
    return lax.psum_scatter(step.operand, _axis(step), scatter_dimension=dimension, tiled=True)


@reads("stablehlo.all_to_all")
def all_to_all(step: OperationStep) -> Results:
    axis = _axis(step)
    split, concat = step.integer("split_dimension"), step.integer("concat_dimension")
    return [lax.all_to_all(each, axis, split, concat, tiled=True) for each in step.operands]


@reads("stablehlo.collective_permute")
def collective_permute(step: OperationStep) -> Array:
    """Return `ppermute` along the axis whose permutation moves these pairs of devices."""
    mesh = step.evaluation.mesh
    pairs = sorted(map(tuple, np.array(step.attribute("source_target_pairs")).tolist()))
    devices = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    for position, name in enumerate(mesh):
        rows = np.moveaxis(devices, position, -1).reshape(-1, mesh[name])
        places = {int(device): place for place, device in enumerate(rows[0])}
        permutation = [(places[a], places[b]) for a, b in pairs if a in places and b in places]
        moved = [(int(row[a]), int(row[b])) for row in rows for a, b in permutation]
        if sorted(moved) == pairs:
            return lax.ppermute(step.operand, name, permutation)
    raise UnreadableProgram("expected pairs of devices along one axis of a mesh")


@dataclass(frozen=True, slots=True)
class DeviceNumber:
    """A number that is computed from the device's: `axis_index` lowers to such operations."""

    divisor: int = 1
    size: int = 0


@reads("stablehlo.partition_id", "stablehlo.replica_id")
def partition_id(step: OperationStep) -> Results:
    if not step.evaluation.mesh:
        raise UnreadableProgram("expected a mesh of the devices that it numbers")
    return [DeviceNumber()]


def _of_device(reader: Callable[[OperationStep], Results]) -> Callable[[OperationStep], Results]:
    """Return a reader that also takes numbers of devices."""

    def read(step: OperationStep) -> Results:
        if not isinstance(step.operand, DeviceNumber):
            return reader(step)
        return _axis_index(step, step.operand)

    return read


def _axis_index(step: OperationStep, number: DeviceNumber) -> Results:
    name = step.operation.name
    if name == "stablehlo.convert":
        mesh = step.evaluation.mesh
        for position, axis in enumerate(mesh):
            following = math.prod([*mesh.values()][position + 1 :])
            if (following, mesh[axis]) == (number.divisor, number.size):
                return [lax.convert_element_type(lax.axis_index(axis), step.dtype)]
        raise UnreadableProgram("expected the index of a device along an axis of a mesh")
    by = constant_of(step.operation.operands[1])
    if by is None:
        raise UnreadableProgram("expected a constant")
    if name == "stablehlo.divide":
        return [DeviceNumber(number.divisor * int(by), number.size)]
    return [DeviceNumber(number.divisor, int(by))]


for _name in ("stablehlo.convert", "stablehlo.divide", "stablehlo.remainder"):
    READERS[_name] = _of_device(READERS[_name])
