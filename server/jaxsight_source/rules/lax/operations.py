"""Operations whose public functions take other arguments than the primitive.

The last ones are of programs over meshes: shard_map, collectives, shardings.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import avals, parameters
from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations import registry
from jaxsight_source.equations.idioms import Window
from jaxsight_source.errors import Unwritable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import FALSE, TRUE, call, lambda_, list_, public, tuple_
from jaxsight_source.values import public_names, spelling
from jaxsight_source.values.spelling import of_first_devices, placements, value
from jaxsight_source.writing.scope import Scope, metadata
from jaxsight_source.writing.variables import nested_results, sequence


@registry.LAX("broadcast_in_dim")
def broadcast_in_dim(view: registry.EquationView) -> Iterator[ast.expr]:
    x, *dynamic_sizes = view.operands
    shape, dimensions = view.params["shape"], view.params["broadcast_dimensions"]
    if dynamic_sizes:
        return
    (output,) = view.outputs
    if view.literals[0] is not None and not dimensions:
        yield call("lax.full", value(shape), x, spelling.dtype(output.dtype))
    yield call("lax.broadcast_in_dim", x, value(shape), value(dimensions))
    if not dimensions:
        yield call("jnp.full", value(shape), x)
        yield call("jnp.full", value(shape), x, spelling.dtype(output.dtype))
    for placed in placements(view.params.get("sharding")):
        if not dimensions:
            dtype = spelling.dtype(output.dtype)
            yield call("lax.full", value(shape), x, dtype, sharding=placed)
        yield call("lax.broadcast_in_dim", x, value(shape), value(dimensions), out_sharding=placed)


@registry.LAX("reshape")
def reshape(view: registry.EquationView) -> Iterator[ast.expr]:
    if len(view.operands) == 1:
        sizes = value(view.params["new_sizes"])
        yield call("lax.reshape", *view.operands, sizes)
        yield call(
            "lax.reshape", *view.operands, sizes, **registry.passed(view.params, "dimensions")
        )
        for placed in placements(view.params.get("sharding")):
            options = registry.passed(view.params, "dimensions") | {"out_sharding": placed}
            yield call("lax.reshape", *view.operands, sizes, **options)


@registry.LAX("device_put")
def device_put(view: registry.EquationView) -> Iterator[ast.expr]:
    operands = view.operands[0] if len(view.operands) == 1 else list_(view.operands)
    devices = view.params.get("devices", ())
    if all(device is None for device in devices):
        for options in ({}, {"may_alias": FALSE}, {"may_alias": TRUE}):
            yield call("jax.device_put", operands, **options)
    elif len(set(devices)) == 1:
        yield call("jax.device_put", operands, value(devices[0]))
    else:
        yield call("jax.device_put", operands, list_(value(device) for device in devices))


_PYTHON_TYPES = {"f": "float", "i": "int", "c": "complex", "b": "bool"}


@registry.LAX("convert_element_type")
def convert(view: registry.EquationView) -> Iterator[ast.expr]:
    (x,) = view.operands
    new = view.params["new_dtype"]
    if view.params.get("weak_type") and (python := _PYTHON_TYPES.get(spelling.kind(new))):
        yield call("lax.convert_element_type", x, ast.Name(python))
    yield call("lax.convert_element_type", x, spelling.dtype(new))
    if view.params.get("sharding") is not None:  # left by transposition
        sharding = ast.Attribute(call("jax.typeof", x), "sharding")
        yield call(ast.Attribute(x, "astype"), spelling.dtype(new), device=sharding)
        yield call("jnp.asarray", x, spelling.dtype(new), device=sharding)


@registry.LAX("xla_metadata_value")
def metadata_of_a_value(view: registry.EquationView) -> Iterator[ast.expr]:
    yield metadata([*view.operands], dict(view.params["xla_metadata_kvs"]))


_MONOIDS = {
    "reduce_window_sum": "lax.add",
    "reduce_window_max": "lax.max",
    "reduce_window_min": "lax.min",
}


def _identity(view: registry.EquationView) -> Iterator[ast.expr]:
    """Yield the number that a window starts from, untyped and typed."""
    dtype = view.inputs[0].dtype
    start = spelling.identity(view.name.rpartition("_")[2], dtype)
    if dtype == np.bool_:
        yield value(bool(start))
        return
    if avals.is_subtype(dtype, np.inexact):
        yield spelling.number(start)
    yield spelling.typed(np.asarray(start).astype(dtype))


@registry.LAX(*_MONOIDS)
def reduce_window(view: registry.EquationView) -> Iterator[ast.expr]:
    (x,) = view.operands
    named = registry.passed(view.params, "window_dimensions", "window_strides", "padding")
    named |= registry.stepping(view.params, "base_dilation", "window_dilation")
    for identity in _identity(view):
        yield call("lax.reduce_window", x, identity, public(_MONOIDS[view.name]), **named)


_AS_IT_IS = {"symmetrize_input": FALSE}


_TRIANGLE = "iota add? iota ge broadcast_in_dim select_n"
"""The equations that extract the lower triangle, which public functions add to the primitive."""


@registry.IDIOMS(
    f"cholesky {_TRIANGLE}",
    f"transpose add div cholesky {_TRIANGLE}",
    f"real? transpose imag? neg? complex? add div cholesky {_TRIANGLE}",
    plain=True,
)
def lower_cholesky(window: Window) -> Iterator[ast.expr]:
    first = window.equations[0]
    operand = window.expr(first.invars[0])
    options = _AS_IT_IS if first.primitive.name == "cholesky" else {}
    yield call("lax.linalg.cholesky", operand, **options)


@registry.LAX("jit", "pjit")
def jitted_by_jax(view: registry.EquationView) -> Iterator[ast.expr]:
    """Yield the call of a public function that is jitted itself.

    A function of `lax` holds the one equation of its name, after conversions. `geqrf` has no public
    function but `jnp.linalg.qr(mode="raw")`.
    """
    if view.params["name"] == "qr":
        yield call("jnp.linalg.qr", *view.operands, mode=ast.Constant("raw"))
    equations = opened(view.params["jaxpr"]).jaxpr.eqns
    if not equations or equations[-1].primitive.name != view.params["name"]:
        return
    *before, inside = equations
    if all(equation.primitive.name == "convert_element_type" for equation in before):
        yield from registry.by_name(replace(view, primitive=inside.primitive, params=inside.params))


_COUNTED = "iota_2x32_shape threefry2x32"
_JOINED = ("xor convert_element_type?", "convert_element_type* shift_left or")
_BITS_OF_A_BYTE = 8


@registry.IDIOMS(
    *(f"unstack {_COUNTED} {joined}" for joined in _JOINED),  # from JAX 0.12 on
    *(f"slice squeeze slice squeeze {_COUNTED} {joined}" for joined in _JOINED),
    plain=True,
)
def threefry_bits(window: Window) -> Iterator[ast.expr]:
    """Yield the bits of a raw key, whose counters (`iota_2x32_shape`) have no public function."""
    key = window.expr(window.equations[0].invars[0])
    shape = value(window.find("iota_2x32_shape").params["shape"])
    drawn = public_names.imported("jax.extend.random", "threefry_prng_impl.random_bits")
    joined = window.equations[-1].primitive.name == "or"
    width = 64 if joined else window.output.aval.dtype.itemsize * _BITS_OF_A_BYTE
    yield call(drawn, key, value(width), shape)


@registry.LAX("random_bits", "random_fold_in", "random_split")
def random_of_keys(view: registry.EquationView) -> Iterator[ast.expr]:
    """Yield a function of one key, mapped over the axes of an array of keys."""
    path = f"jax.{view.name.replace('_', '.', 1)}"
    shape = view.params.get("shape", ())
    options: tuple[ast.expr, ...] = ()
    if view.name == "random_bits":
        options = value(shape), value(np.dtype(f"uint{view.params['bit_width']}"))
    elif view.name == "random_split" and shape != (2,):  # what it returns by default
        options = (value(shape[0] if len(shape) == 1 else shape),)
    if not (axes := view.inputs[0].ndim):
        yield call(path, *view.operands, *options)
        return
    function: ast.expr = public(path)
    if options:
        function = exprs.lambda_(("key",), call(path, ast.Name("key"), *options))
    for _ in range(axes):
        function = call("jax.vmap", function)
    yield call(function, *view.operands)


@registry.STRUCTURES("xla_metadata_call")
def metadata_of_a_call(scope: Scope, equation: Equation) -> Proved | None:
    params = equation.params
    metadata = dict(params["xla_metadata"])
    if params.get("ad_metadata", "same") != "same" or not all(map(exprs.is_identifier, metadata)):
        return None
    program = opened(params["jaxpr"])
    function = scope.function("annotated", program)
    name = public_names.imported("jax.experimental.xla_metadata", "xla_metadata_call")
    named = {key: value(part) for key, part in metadata.items()}
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(
        call(call(name, function, **named), *operands), nested_results(len(equation.outvars))
    )


@registry.STRUCTURES("inspect_sharding")
def inspect_sharding(scope: Scope, equation: Equation) -> Proved:
    callback = scope.writer.passed.placeholder(
        equation.params["callback"], "told", "runs on the host"
    )
    operands = [scope.operand(atom) for atom in equation.invars]
    return Proved(call("jax.debug.inspect_array_sharding", *operands, callback=callback), ())


@registry.STRUCTURES("shard_map")
def shard_map(scope: Scope, equation: Equation) -> Proved:
    mapped_program = parameters.shard_map(equation.params)
    program = opened(mapped_program.body)
    with parameters.inside(mapped_program):
        body = scope.function("shard", program)
    options: dict[str, ast.expr] = {}
    if isinstance(mapped_program.mesh, jax.sharding.Mesh):
        options["mesh"] = scope.once(value(mapped_program.mesh))
    options["in_specs"] = tuple_(value(spec) for spec in mapped_program.in_specs)
    options["out_specs"] = sequence([value(spec) for spec in mapped_program.out_specs])
    if not mapped_program.is_whole:
        options["axis_names"] = value(set(mapped_program.manual))
    if not mapped_program.check_vma:
        options["check_vma"] = FALSE
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    mapped = scope.assigned("mapped", call("jax.shard_map", body, **options))
    return Proved(call(mapped, *operands), nested_results(len(equation.outvars)))


@registry.IDIOMS("broadcast_in_dim|reshape pvary? all_to_all squeeze", plain=True)
def all_to_all_of_whole_axis(window: Window) -> Iterator[ast.expr]:
    """Yield an exchange that removes the axis which it divides and adds another."""
    params = window.find("all_to_all").params
    split, joined = params["split_axis"], params["concat_axis"]
    if params["tiled"] or split == joined:
        return
    x = window.expr(window.equations[0].invars[0])
    axes, groups = params["axis_name"], params["axis_index_groups"]
    options = {} if groups is None else {"axis_index_groups": value([*map(list, groups)])}
    positions = value(split - (split > joined)), value(joined - (joined > split))
    singles = [axes[0]] if isinstance(axes, tuple) and len(axes) == 1 else []
    for axis in (*singles, axes):
        yield call("lax.all_to_all", x, value(axis), *positions, **options)


@registry.LAX("sharding_constraint")
def sharding_constraint(view: registry.EquationView) -> Iterator[ast.expr]:
    sharding = view.params["sharding"]
    free = view.params.get("unconstrained_dims") or ()
    if isinstance(sharding, jax.sharding.NamedSharding):
        spec = list(sharding.spec) + [None] * (view.inputs[0].ndim - len(sharding.spec))
        for dimension in free:
            spec[dimension] = jax.sharding.PartitionSpec.UNCONSTRAINED
        constrained = sharding.spec
        if free:
            constrained = jax.sharding.PartitionSpec(*spec)  # type: ignore[no-untyped-call]
        yield call("lax.with_sharding_constraint", *view.operands, _over(sharding, constrained))
        if isinstance(sharding.mesh, jax.sharding.AbstractMesh):
            yield call("lax.with_sharding_constraint", *view.operands, value(constrained))
    elif sharding is not None:
        yield call("lax.with_sharding_constraint", *view.operands, value(sharding))


@registry.LAX("reshard")
def reshard(view: registry.EquationView) -> Iterator[ast.expr]:
    sharding = view.params["dst_sharding"]
    if isinstance(sharding.mesh, jax.sharding.AbstractMesh):
        yield call("jax.sharding.reshard", *view.operands, value(sharding.spec))
    mesh = view.params.get("concrete_mesh")
    for abstract in (False, True):
        yield call(
            "jax.sharding.reshard", *view.operands, _over(sharding, sharding.spec, mesh, abstract)
        )


def _over(sharding: Any, spec: object, mesh: object = None, abstract: bool = False) -> ast.expr:
    """Return a sharding over a concrete mesh, or over its `abstract` mesh.

    An abstract mesh becomes one of the machine's first devices; raise `Unwritable` if there are too
    few.
    """
    concrete: Any = sharding.mesh if mesh is None else mesh
    if isinstance(concrete, jax.sharding.AbstractMesh):
        concrete = of_first_devices(concrete)
        if concrete is None:
            raise Unwritable(sharding.mesh, "fewer devices are present")
    mesh_expr = value(concrete)
    over = ast.Attribute(mesh_expr, "abstract_mesh") if abstract else mesh_expr
    return call("jax.sharding.NamedSharding", over, value(spec))


@registry.LAX("call_hi_primitive")
def high(view: registry.EquationView) -> Iterator[ast.expr]:
    """Yield the public function that creates the primitive, under `vmap` if it was."""
    name, fields = parameters.class_and_params(view.params)
    match name:
        case "Nonzero":
            yield from _nonzero(view, fields)
        case "SearchSorted" if fields["dimension"] == fields["batch_dims"]:
            # Under `vmap` for the axes that both arrays share.
            named = {"side": "left", "method": "scan"}
            options: dict[str, ast.expr] = {
                option: value(fields[option]) for option in named if fields[option] != named[option]
            }
            function = "jnp.searchsorted.__wrapped__"
            yield _mapped(
                fields["batch_dims"],
                view.operands,
                lambda rows: call(function, *rows, **options),
                bare=None if options else public(function),
            )
        case "Ldexp" | "Frexp":
            yield call(f"jnp.{name.lower()}.__wrapped__", *view.operands)
        case "Einsum":
            yield call("jnp.einsum", ast.Constant(str(fields["subscripts"])), *view.operands)
        case _:
            return


def _nonzero(view: registry.EquationView, fields: Params) -> Iterator[ast.expr]:
    """Yield `jnp.nonzero` over the last axes of an array, under `vmap` for the others."""
    array, *filled = view.operands
    rank, axes = view.inputs[0].ndim, tuple(fields["axes"])
    options: dict[str, ast.expr] = {"size": value(fields["size"])}
    if axes != tuple(range(rank - len(axes), rank)):
        return
    if filled and rank == len(axes):
        fills = (
            [filled[0], tuple_(filled)]
            if len({str(literal) for literal in view.literals[1:]}) == 1
            else [tuple_(filled)]
        )
        for fill in fills:
            yield call("jnp.nonzero", array, **options, fill_value=fill)
    elif not filled:
        yield _mapped(rank - len(axes), [array], lambda rows: call("jnp.nonzero", *rows, **options))


def _mapped(
    times: int,
    operands: Sequence[ast.expr],
    apply: Callable[[Sequence[ast.expr]], ast.expr],
    bare: ast.expr | None = None,
) -> ast.expr:
    """Return a call under nested `vmap`s over first axes.

    `bare` is the function itself, if it is called without options.
    """
    if not times:
        return apply(operands)
    rows = ("row",) if len(operands) == 1 else tuple(f"row{i + 1}" for i in range(len(operands)))
    function = bare if bare is not None else lambda_(rows, apply([ast.Name(row) for row in rows]))
    for _ in range(times):
        function = call("jax.vmap", function)
    return call(function, *operands)
