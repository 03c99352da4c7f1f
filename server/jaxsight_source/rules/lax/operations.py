"""Operations on arrays whose public functions take other arguments than the primitive."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import dtypes
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.fallback import by_name, keywords
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, LAX, STRUCTURES, View
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import FALSE, TRUE, call, is_identifier, lambda_, list_, public
from jaxsight_source.values import public_names, scalars, spelling
from jaxsight_source.values.spelling import placements, value
from jaxsight_source.writing.contexts import metadata
from jaxsight_source.writing.results import nested_results
from jaxsight_source.writing.scope import Scope


@LAX("iota")
def iota(view: View) -> Iterator[ast.expr]:
    dtype, shape = scalars.dtype(view.params["dtype"]), view.params["shape"]
    if len(shape) == 1 and not view.operands:
        yield call("lax.iota", dtype, value(shape[0]))
    sharding = keywords(view, "sharding") if view.params.get("sharding") is not None else {}
    named = {"out_sharding": sharding["sharding"]} if sharding else {}
    yield call(
        "lax.broadcasted_iota", dtype, value(shape), value(view.params["dimension"]), **named
    )


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
        yield call("lax.reshape", *view.operands, sizes, **keywords(view, "dimensions"))
        for placed in placements(view.params.get("sharding")):
            options = {"out_sharding": placed}
            if view.params.get("dimensions") is not None:
                options = {**keywords(view, "dimensions"), **options}
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
    named = keywords(view, "window_dimensions", "window_strides", "padding")
    for name in ("base_dilation", "window_dilation"):
        if any(step != 1 for step in view.params.get(name) or ()):
            named |= keywords(view, name)
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
        function = lambda_(("key",), call(path, ast.Name("key"), *options))
    for _ in range(axes):
        function = call("jax.vmap", function)
    yield call(function, *view.operands)


@LAX("layout_constraint")
def layout_constraint(view: View) -> Iterator[ast.expr]:
    function = public_names.imported("jax.experimental.layout", "with_layout_constraint")
    yield call(function, *view.operands, spelling.layout(view.params["layout"]))


@STRUCTURES("xla_metadata_call")
def metadata_of_a_call(scope: Scope, equation: Equation) -> Proved | None:
    params = equation.params
    metadata = dict(params["xla_metadata"])
    if params.get("ad_metadata", "same") != "same" or not all(map(is_identifier, metadata)):
        return None
    program = opened(params["jaxpr"])
    function = scope.function("annotated", program)
    name = public_names.imported("jax.experimental.xla_metadata", "xla_metadata_call")
    named = {key: spelling.value(part) for key, part in metadata.items()}
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
