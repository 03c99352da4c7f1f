"""The mesh of example inputs: declared, an expression's value, or the one that the module has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from jaxsight.meshes.compat import meshes
from jaxsight.meshes.compat.meshes import AnyMesh
from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution.device_demand import MOST, Demand, MoreDevices
from jaxsight.tracer.failures import UserError, refusal
from jaxsight.wire.meshes import Mesh, Spec
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec
from jaxsight.wire.messages.requests import Trace

MESH = "mesh"
"""The name of the mesh in example inputs."""

UNKNOWN_AXIS, UNEVEN_AXIS, NOT_A_MESH = "UnknownAxis", "UnevenAxis", "NotAMesh"
"""Types of failures, whose notes are what to do; the server has rules for them."""


def mesh_of(
    request: Trace,
    namespace: Mapping[str, object],
    evaluate: Callable[[str], object],
) -> AnyMesh | None:
    """Return the mesh of a request's inputs, `None` if they need none.

    Args:
        request: the request.
        namespace: the module.
        evaluate: returns the value of an expression of the example inputs.

    Raises:
        UserError: the module has no such mesh; its stage is `inputs`.
        MoreDevices: the mesh has more devices than there are.
    """
    if request.mesh is not None:
        return _declared(request, request.mesh)
    if request.mesh_source:
        value = evaluate(request.mesh_source)
        if meshes.is_mesh(value):
            return value
        if any(argument.name == MESH for argument in request.arguments):
            return None
        raise _failed(NOT_A_MESH, f"not a `Mesh` but of type `{type(value).__name__}`", MESH)
    axes = {
        axis: argument.name
        for argument in request.arguments
        for spec in _specs(argument.spec)
        for over in spec
        for axis in over
    }
    if not axes:
        return None
    return meshes.context() or _own(request, namespace, axes)


def _declared(request: Trace, mesh: Mesh) -> AnyMesh:
    """Return a mesh of simulated devices with the declared axes, or the module's if it has them."""
    context = meshes.context()
    if context is not None:
        if request.mesh_is_default or meshes.sizes_of(context) == dict(mesh.axes):
            return context
        own = ", ".join(f"{name}={size}" for name, size in meshes.sizes_of(context).items())
        message = f"the module sets another mesh: `{own}`"
        raise _failed(UNEVEN_AXIS, message, MESH, "remove the line, or give the mesh these axes")
    present = devices.simulated()
    count = devices.count() if present is None else present
    if mesh.size <= count:
        return meshes.make(mesh.axes, mesh.types)
    if mesh.size > MOST:
        message = f"meshes of more than {MOST} devices are not simulated"
        raise _failed(NOT_A_MESH, message, MESH, "use smaller axes")
    sets_count = any(devices.mentioned(chunk.text) for chunk in request.chunks)
    if present is not None and not sets_count:
        raise MoreDevices(Demand(mesh.size))
    raise _failed(NOT_A_MESH, f"the mesh has {mesh.size} devices, but there are {count}", MESH)


def _own(request: Trace, namespace: Mapping[str, object], axes: dict[str, str]) -> AnyMesh:
    """Return the module's only mesh with the axes that the inputs name."""
    candidates = {name: namespace.get(name) for name in request.mesh_names}
    having = {
        name: mesh
        for name, mesh in candidates.items()
        if meshes.is_mesh(mesh) and axes.keys() <= meshes.sizes_of(mesh).keys()
    }
    axis, argument = next(iter(axes.items()))
    distinct = list(dict.fromkeys(having.values()))
    if len(distinct) == 1:
        return distinct[0]
    if distinct:
        names = ", ".join(f"`{name}`" for name in having)
        message = f"several meshes of the module have the axis `{axis}`: {names}"
        help = f"choose one: `mesh = {next(iter(having))}`"
    else:
        message = f"unknown mesh axis `{axis}`"
        help = f"add `mesh: {', '.join(f'{name}=2' for name in axes)}`"
    raise _failed(UNKNOWN_AXIS, message, f"{argument}@{axis}", help)


def _specs(spec: InputSpec) -> Iterator[Spec]:
    match spec:
        case ArraySpec(spec=axes) | KeySpec(spec=axes):
            yield axes
        case TreeSpec(children=children):
            for child in children:
                yield from _specs(child)
        case _:
            return


def divided(
    struct: object, shape: tuple[int, ...], mesh: AnyMesh, spec: Spec, argument: str
) -> object:
    """Return an abstract array on a mesh.

    Raises:
        UserError: the mesh has no such axis, or it does not divide the dimension.
    """
    sizes = meshes.sizes_of(mesh)
    for size, axes in zip(shape, spec, strict=False):
        for axis in axes:
            if axis not in sizes:
                names = ", ".join(f"`{name}`" for name in sizes)
                help = f"use an axis of the mesh: {names}"
                message = f"unknown mesh axis `{axis}`"
                raise _failed(UNKNOWN_AXIS, message, f"{argument}@{axis}", help)
        count = math.prod(sizes[axis] for axis in axes)
        if size % count:
            names = " and ".join(f"`{axis}`" for axis in axes)
            over = f"mesh ax{'es' if len(axes) > 1 else 'is'} {names} of size {count}"
            message = f"size {size} is not divisible by {over}"
            help = f"use a multiple of {count}"
            raise _failed(UNEVEN_AXIS, message, f"{argument}@{axes[0]}", help)
    return meshes.divided(struct, mesh, spec)


def _failed(type: str, message: str, argument: str, help: str = "") -> UserError:
    error = refusal("inputs", message, argument, type=type)
    return UserError(replace(error.failure, notes=(help,) if help else ()))
