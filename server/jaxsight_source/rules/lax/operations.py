"""Operations whose public functions take other arguments than the primitive.

The last ones are of programs over meshes: shard_map, collectives, shardings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import dtypes
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import shard_maps
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.fallback import by_name, given
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, LAX, STRUCTURES, View
from jaxsight_source.errors import Unwritable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import FALSE, TRUE, call, list_, public, tuple_
from jaxsight_source.values import public_names, scalars
from jaxsight_source.values.spelling import of_first_devices, placements, value
from jaxsight_source.writing.contexts import metadata
from jaxsight_source.writing.results import nested_results, sequence
from jaxsight_source.writing.scope import Scope


@LAX("broadcast_in_dim")
def broadcast_in_dim(view: View) -> Iterator[ast.expr]:
    x, *dynamic_sizes = view.operands
    shape, dimensions = view.params["shape"], view.params["broadcast_dimensions"]
    if dynamic_sizes:
        return
    (output,) = view.outputs
    if view.literals[0] is not None and not dimensions:
        yield call("lax.full", value(shape), x, scalars.dtype(output.dtype))
    yield call("lax.broadcast_in_dim", x, value(shape), value(dimensions))
    if not dimensions:
        yield call("jnp.full", value(shape), x)
        yield call("jnp.full", value(shape), x, scalars.dtype(output.dtype))
    for placed in placements(view.params.get("sharding")):
        if not dimensions:
            dtype = scalars.dtype(output.dtype)
            yield call("lax.full", value(shape), x, dtype, sharding=placed)
        yield call("lax.broadcast_in_dim", x, value(shape), value(dimensions), out_sharding=placed)


@LAX("reshape")
def reshape(view: View) -> Iterator[ast.expr]:
    if len(view.operands) == 1:
        sizes = value(view.params["new_sizes"])
        yield call("lax.reshape", *view.operands, sizes)
        yield call("lax.reshape", *view.operands, sizes, **given(view.params, "dimensions"))
        for placed in placements(view.params.get("sharding")):
            options = given(view.params, "dimensions") | {"out_sharding": placed}
            yield call("lax.reshape", *view.operands, sizes, **options)


@LAX("device_put")
def device_put(view: View) -> Iterator[ast.expr]:
    operands = view.operands[0] if len(view.operands) == 1 else list_(view.operands)
    devices = view.params.get("devices", ())
    if all(device is None for device in devices):
        yield call("jax.device_put", operands)
        yield call("jax.device_put", operands, may_alias=FALSE)
        yield call("jax.device_put", operands, may_alias=TRUE)
    elif len(set(devices)) == 1:
        yield call("jax.device_put", operands, value(devices[0]))
    else:
        yield call("jax.device_put", operands, list_(value(device) for device in devices))


_PYTHON_TYPES = {"f": "float", "i": "int", "c": "complex", "b": "bool"}


@LAX("convert_element_type")
def convert(view: View) -> Iterator[ast.expr]:
    (x,) = view.operands
    new = view.params["new_dtype"]
    if view.params.get("weak_type") and (python := _PYTHON_TYPES.get(scalars.kind(new))):
        yield call("lax.convert_element_type", x, ast.Name(python))
    yield call("lax.convert_element_type", x, scalars.dtype(new))
    if view.params.get("sharding") is not None:  # left by transposition
        sharding = ast.Attribute(call("jax.typeof", x), "sharding")
        yield call(ast.Attribute(x, "astype"), scalars.dtype(new), device=sharding)
        yield call("jnp.asarray", x, scalars.dtype(new), device=sharding)


@LAX("xla_metadata_value")
def metadata_of_a_value(view: View) -> Iterator[ast.expr]:
    yield metadata([*view.operands], dict(view.params["xla_metadata_kvs"]))


_MONOIDS = {
    "reduce_window_sum": "lax.add",
    "reduce_window_max": "lax.max",
    "reduce_window_min": "lax.min",
}


def _identity(view: View) -> Iterator[ast.expr]:
    dtype = view.inputs[0].dtype
    sum_ = view.name == "reduce_window_sum"
    low = view.name == "reduce_window_max"
    if dtype == np.bool_:
        yield FALSE if sum_ or low else TRUE
    elif dtypes.is_subtype(dtype, np.integer):
        info: Any = getattr(jax.numpy, "iinfo")(dtype)  # noqa: B009 - it has no types
        yield scalars.typed(np.asarray(0 if sum_ else info.min if low else info.max, dtype))
    else:
        bound = 0.0 if sum_ else -np.inf if low else np.inf
        yield scalars.number(bound)
        yield scalars.typed(np.asarray(bound).astype(dtype))


@LAX(*_MONOIDS)
def reduce_window(view: View) -> Iterator[ast.expr]:
    (x,) = view.operands
    named = given(view.params, "window_dimensions", "window_strides", "padding")
    for name in ("base_dilation", "window_dilation"):
        if any(step != 1 for step in view.params.get(name) or ()):
            named |= given(view.params, name)
    for identity in _identity(view):
        yield call("lax.reduce_window", x, identity, public(_MONOIDS[view.name]), **named)


_AS_IT_IS = {"symmetrize_input": FALSE}


_TRIANGLE = "iota add? iota ge broadcast_in_dim select_n"
"""The equations that extract the lower triangle, which public functions add to the primitive."""


@IDIOMS(
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


@LAX("jit", "pjit")
def jitted_by_jax(view: View) -> Iterator[ast.expr]:
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
        yield from by_name(replace(view, primitive=inside.primitive, params=inside.params))


_COUNTED = "iota_2x32_shape threefry2x32"
_JOINED = ("xor convert_element_type?", "convert_element_type* shift_left or")
_BITS_OF_A_BYTE = 8


@IDIOMS(
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


@LAX("random_bits", "random_fold_in", "random_split")
def random_of_keys(view: View) -> Iterator[ast.expr]:
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


@STRUCTURES("xla_metadata_call")
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


@STRUCTURES("inspect_sharding")
def inspect_sharding(scope: Scope, equation: Equation) -> Proved:
    callback = scope.writer.passed.placeholder(
        equation.params["callback"], "told", "runs on the host"
    )
    operands = [scope.operand(atom) for atom in equation.invars]
    return Proved(call("jax.debug.inspect_array_sharding", *operands, callback=callback), ())


@STRUCTURES("shard_map")
def shard_map(scope: Scope, equation: Equation) -> Proved:
    mapped_program = shard_maps.shard_map(equation.params)
    program = opened(mapped_program.body)
    with shard_maps.inside(mapped_program):
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


@IDIOMS("broadcast_in_dim|reshape pvary? all_to_all squeeze", plain=True)
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


@LAX("sharding_constraint")
def sharding_constraint(view: View) -> Iterator[ast.expr]:
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


@LAX("reshard")
def reshard(view: View) -> Iterator[ast.expr]:
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
