"""Create the arguments of a call from its example inputs.

Arrays become abstract at once; `=` expressions are evaluated abstractly if possible, so that
`params = init(key)` of a large model uses no memory.
This must never initialize a backend unless an expression itself needs concrete values.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.lru import Recent
from jaxsight.meshes.compat import meshes, shardings
from jaxsight.meshes.compat.meshes import AnyMesh, uses_several_devices
from jaxsight.tracer.calls.leaves import (
    holds_no_tracer,
    is_array,
    shape_only,
    spread_like,
    with_varying_numbers,
)
from jaxsight.tracer.calls.parameters import bound, named
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.execution.device_demand import MOST, Demand, MoreDevices
from jaxsight.tracer.failures import UserError, failure, refusal
from jaxsight.tracer.states import nnx
from jaxsight.tracer.states.watch import Watch
from jaxsight.wire.meshes import Mesh, Spec
from jaxsight.wire.messages.inputs import (
    Argument,
    ArraySpec,
    InputSpec,
    KeySpec,
    MeshSpec,
    TreeSpec,
    ValueSpec,
)
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import Warned
from jaxsight_source.compat import avals

# The mesh of example inputs: declared, an expression's value, or the one that the module has.

MESH = "mesh"
"""The name of the mesh in example inputs."""

UNKNOWN_AXIS, UNEVEN_AXIS, NOT_A_MESH = "UnknownAxis", "UnevenAxis", "NotAMesh"
"""Types of failures, whose notes are what to do; the server has rules for them."""


def _declared(request: Trace, mesh: Mesh) -> AnyMesh:
    """Return a mesh of simulated devices with the declared axes, or the module's if it has them."""
    context = meshes.context()
    if context is not None:
        if request.mesh_is_default or meshes.sizes_of(context) == dict(mesh.axes):
            return context
        own = ", ".join(f"{name}={size}" for name, size in meshes.sizes_of(context).items())
        message = f"the module sets another mesh: `{own}`"
        raise _failed(UNEVEN_AXIS, message, MESH, "remove the line, or give the mesh these axes")
    count = jax.device_count()
    if mesh.size <= count:
        return meshes.make(mesh.axes, mesh.types)
    if mesh.size > MOST:
        message = f"meshes of more than {MOST} devices are not simulated"
        raise _failed(NOT_A_MESH, message, MESH, "use smaller axes")
    sets_count = any(devices.mentioned(chunk.text) for chunk in request.chunks)
    if devices.simulated() is not None and not sets_count:
        raise MoreDevices(Demand(mesh.size))
    raise _failed(NOT_A_MESH, f"the mesh has {mesh.size} devices, but there are {count}", MESH)


def _own(request: Trace, namespace: Mapping[str, object], axes: dict[str, str]) -> AnyMesh:
    """Return the module's only mesh with the axes that the inputs name."""
    named = ((name, namespace.get(name)) for name in request.mesh_names)
    sized = [(n, mesh, meshes.sizes_of(mesh)) for n, mesh in named if meshes.is_mesh(mesh)]
    having = {name: mesh for name, mesh, sizes in sized if axes.keys() <= sizes.keys()}
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


def _divided(
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
                help = "use an axis of the mesh: " + ", ".join(f"`{name}`" for name in sizes)
                message = f"unknown mesh axis `{axis}`"
                raise _failed(UNKNOWN_AXIS, message, f"{argument}@{axis}", help)
        count = math.prod(sizes[axis] for axis in axes)
        if size % count:
            names = " and ".join(f"`{axis}`" for axis in axes)
            over = f"mesh ax{'es' if len(axes) > 1 else 'is'} {names} of size {count}"
            message, help = f"size {size} is not divisible by {over}", f"use a multiple of {count}"
            raise _failed(UNEVEN_AXIS, message, f"{argument}@{axes[0]}", help)
    return meshes.divided(struct, mesh, spec)


def _failed(type: str, message: str, argument: str, help: str = "") -> UserError:
    error = refusal("inputs", message, argument, type=type)
    return UserError(replace(error.failure, notes=(help,) if help else ()))


_EXPRESSION = "<example inputs>"

_REMEMBERED = 64
"""Evaluated expressions that are kept, of a few files; one that is dropped runs again."""


@dataclass(slots=True)
class Inputs:
    """The call's arguments: arrays are abstract, other values unchanged."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    named: dict[str, object]
    """Arguments by parameter, for users."""
    warnings: list[Warned] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Call:
    """What the arguments of a call are made from."""

    request: Trace
    namespace: Mapping[str, object]
    user_function: UserFunction
    mesh: AnyMesh | None
    warned: list[Warned] = field(default_factory=list)

    @property
    def replicated_on(self) -> AnyMesh | None:
        """The mesh, if an array that is divided over no axes is replicated on it.

        `jax.jit` itself places the arguments of a function with `in_shardings`.
        """
        return None if meshes.has_in_shardings(self.user_function.call) else self.mesh


_Evaluated = tuple[dict[str, object], tuple[object, ...], nnx.NodeTree]
"""The objects behind the names of an expression, which validate its value: leaves, structure."""


class Evaluator:
    """Evaluates example inputs with a cache of `=` expressions; there is one per process.

    The arrays of expressions are abstract unless they are to be `concrete`. Numbers that `jax.jit`
    traces are abstract, unless it `keeps_numbers`.
    """

    def __init__(self, *, concrete: bool = False, keeps_numbers: bool = False) -> None:
        self._concrete = concrete
        self._keeps_numbers = keeps_numbers
        self._evaluated: Recent[object, _Evaluated] = Recent(_REMEMBERED)

    def mesh(self, request: Trace, namespace: Mapping[str, object]) -> AnyMesh | None:
        """Return the mesh of the example inputs, under which the function is to be traced.

        Raises:
            UserError: the module has no such mesh; its stage is `inputs`.
            MoreDevices: it has more devices than there are.
        """
        if request.mesh is not None:
            return _declared(request, request.mesh)
        if request.mesh_source:
            value = self._evaluate(request.mesh_source, MESH, request, namespace)
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
        return (meshes.context() or _own(request, namespace, axes)) if axes else None

    def inputs(
        self,
        request: Trace,
        user_function: UserFunction,
        namespace: Mapping[str, object],
        mesh: AnyMesh | None = None,
        known: Mapping[str, object] | None = None,
    ) -> Inputs:
        """Return the arguments for `user_function`.

        Args:
            request: the request with the example inputs.
            user_function: the function.
            namespace: the module.
            mesh: the mesh of the example inputs, which is the context's.
            known: arguments by parameter that a dry run has seen, besides those of the request.

        Raises:
            UserError: the inputs are invalid; its stage is `inputs`, and it names the argument.
            MoreDevices: an expression needs more devices than there are.
        """
        call = _Call(request, namespace, user_function, mesh)
        written = {each.name: self._value(each, each.spec, call) for each in request.arguments}
        args, kwargs = bound(request.function, user_function, {**(known or {}), **written})
        return Inputs(args, kwargs, named(user_function, args, kwargs), call.warned)

    def _value(self, argument: Argument, spec: InputSpec, call: _Call) -> object:
        match spec:
            case ArraySpec():
                return _placed(_array(argument.name, spec, call.warned), argument, spec, call)
            case KeySpec():
                try:
                    key = avals.key_struct(spec.impl, spec.shape)
                except ValueError as error:
                    raise UserError(failure(error, "inputs", argument.name)) from error
                return _placed(key, argument, spec, call)
            case ValueSpec(source, True):
                return _literal(source, argument.name)
            case ValueSpec(source, _, keeps_numbers):
                about = argument.name, call.request, call.namespace, call.replicated_on
                value = self._evaluate(source, *about)
                if keeps_numbers or self._keeps_numbers:
                    return value
                return with_varying_numbers(value, call.user_function)
            case MeshSpec():
                return call.mesh
            case TreeSpec(kind, children, keys):
                parts = [self._value(argument, part, call) for part in children]
                if kind == "dict":
                    names = [_literal(key, argument.name) for key in keys]
                    return dict(zip(names, parts, strict=True))
                return parts if kind == "list" else tuple(parts)

    def _evaluate(
        self,
        source: str,
        argument: str,
        request: Trace,
        namespace: Mapping[str, object],
        mesh: AnyMesh | None = None,
    ) -> Any:
        scope = {**namespace, **dict(request.sizes)}
        try:
            tree = ast.parse(source.strip(), _EXPRESSION, "eval")
            code = compile(tree, _EXPRESSION, "eval")
            if self._concrete:
                return eval(code, scope)
        except Exception as error:
            raise UserError(failure(error, "inputs", argument)) from error
        key = (request.file, source, request.sizes, mesh)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        depends = {name: namespace[name] for name in names if name in namespace}
        cached = self._evaluated.get(key)
        # By identity: `==` computes for arrays, and runs user code for others.
        if cached is not None and (
            cached[0].keys() == depends.keys()
            and all(cached[0][name] is depends[name] for name in depends)
        ):
            return cached[2].unflatten(cached[1])

        def run() -> object:
            # Changes of the module by this evaluation are not the function's.
            with Watch(None, depends):
                return eval(code, scope)

        try:
            leaves, structure = _abstractly(run)
        except Exception:  # noqa: BLE001 - user code
            # An error counts only if it also occurs with concrete values.
            try:
                leaves, structure = nnx.flatten(run())
            except Exception as error:
                texts = [source, *(chunk.text for chunk in request.chunks)]
                if (count := device_demand.wanted(error, texts)) is not None:
                    raise MoreDevices(count) from None
                raise UserError(failure(error, "inputs", argument)) from error
            leaves = [shape_only(leaf) for leaf in leaves]
            # Not kept: a tracer must not outlive the trace that it belongs to.
            if not all(map(holds_no_tracer, leaves)):
                return structure.unflatten(leaves)
        if mesh is not None:
            leaves = [meshes.on_devices(leaf, mesh) for leaf in leaves]
        self._evaluated.put(key, (depends, tuple(leaves), structure))
        return structure.unflatten(leaves)


class _NotAbstract(Exception):
    """A result is known only once it is computed.

    It may hold tracers, or its arrays may be on several devices, which shapes do not show.
    """


def _abstractly(run: Callable[[], object]) -> tuple[list[object], nnx.NodeTree]:
    """Return leaves and structure of the result of `run`, without computing an array.

    Raises:
        _NotAbstract: the result is known only once it is computed.
    """
    leaves: list[object] = []
    structure: nnx.NodeTree

    def arrays() -> list[object]:
        nonlocal leaves, structure
        # `arrays` may run twice: for `make_jaxpr` and for `eval_shape`.
        leaves, structure = nnx.flatten(run())
        if not all(is_array(leaf) or holds_no_tracer(leaf) for leaf in leaves):
            raise _NotAbstract
        return [leaf for leaf in leaves if is_array(leaf)]

    if devices.are_several() and uses_several_devices(jax.make_jaxpr(arrays)()):
        raise _NotAbstract
    shapes = iter(jax.eval_shape(arrays))
    leaves = [spread_like(next(shapes), leaf) if is_array(leaf) else leaf for leaf in leaves]
    return leaves, structure


def _placed(struct: object, argument: Argument, spec: ArraySpec | KeySpec, call: _Call) -> object:
    """Return an abstract array on the mesh, and in its memory; unchanged without a mesh."""
    if call.mesh is not None and (spec.spec or call.replicated_on is not None):
        struct = _divided(struct, spec.shape, call.mesh, spec.spec, argument.name)
    return shardings.on_host(struct) if isinstance(spec, ArraySpec) and spec.on_host else struct


def _array(name: str, spec: ArraySpec, warned: list[Warned]) -> object:
    try:
        dtype = np.dtype(getattr(jnp, spec.dtype, spec.dtype))
    except TypeError as error:
        raise UserError(failure(error, "inputs", name)) from error
    with warnings.catch_warnings():
        # JAX's own warning does not name the input, as ours does below.
        warnings.simplefilter("ignore")
        canonical = jax.dtypes.canonicalize_dtype(dtype)
    if canonical != dtype:
        wanted, became = (avals.array_text(kind, spec.shape) for kind in (dtype, canonical))
        text = f"example input {name}: {wanted} becomes {became}, as jax_enable_x64 is off"
        warned.append(Warned("UserWarning", text))
    return avals.struct(spec.shape, canonical, spec.weak)


def _literal(source: str, argument: str) -> object:
    try:
        return ast.literal_eval(source.strip())
    # The errors that Python documents for `literal_eval`.
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise UserError(failure(error, "inputs", argument)) from error
