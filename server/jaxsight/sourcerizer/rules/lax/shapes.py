"""Primitives that create arrays or change their shape."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.sourcerizer.equations.fallback import keywords
from jaxsight.sourcerizer.equations.registry import LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call, list_
from jaxsight.sourcerizer.values import scalars
from jaxsight.sourcerizer.values.spelling import placements, value


@LAX("iota")
def iota(view: View) -> Iterator[Expr]:
    dtype, shape = scalars.dtype(view.params["dtype"]), view.params["shape"]
    if len(shape) == 1 and not view.operands:
        yield call("lax.iota", dtype, value(shape[0]))
    sharding = keywords(view, "sharding") if view.params.get("sharding") is not None else {}
    named = {"out_sharding": sharding["sharding"]} if sharding else {}
    yield call(
        "lax.broadcasted_iota", dtype, value(shape), value(view.params["dimension"]), **named
    )


@LAX("broadcast_in_dim")
def broadcast_in_dim(view: View) -> Iterator[Expr]:
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
def reshape(view: View) -> Iterator[Expr]:
    if len(view.operands) == 1:
        sizes = value(view.params["new_sizes"])
        yield call("lax.reshape", *view.operands, sizes)
        yield call("lax.reshape", *view.operands, sizes, **keywords(view, "dimensions"))
        for placed in placements(view.params.get("sharding")):
            options = {"out_sharding": placed}
            if view.params.get("dimensions") is not None:
                options = {**keywords(view, "dimensions"), **options}
            yield call("lax.reshape", *view.operands, sizes, **options)


@LAX("squeeze")
def squeeze(view: View) -> Iterator[Expr]:
    yield call("lax.squeeze", *view.operands, value(view.params["dimensions"]))


@LAX("transpose")
def transpose(view: View) -> Iterator[Expr]:
    yield call("lax.transpose", *view.operands, value(view.params["permutation"]))


@LAX("rev")
def rev(view: View) -> Iterator[Expr]:
    yield call("lax.rev", *view.operands, value(view.params["dimensions"]))


@LAX("slice")
def slice_(view: View) -> Iterator[Expr]:
    bounds = value(view.params["start_indices"]), value(view.params["limit_indices"])
    if view.params["strides"] is None:
        yield call("lax.slice", *view.operands, *bounds)
    yield call("lax.slice", *view.operands, *bounds, value(view.params["strides"]))


@LAX("concatenate")
def concatenate(view: View) -> Iterator[Expr]:
    yield call("lax.concatenate", list_(view.operands), value(view.params["dimension"]))


@LAX("pad")
def pad(view: View) -> Iterator[Expr]:
    yield call("lax.pad", *view.operands, value(tuple(view.params["padding_config"])))


@LAX("stack", "unstack")
def stack(view: View) -> Iterator[Expr]:
    operands = (list_(view.operands),) if view.name == "stack" else view.operands
    for where in ("lax", "jnp"):
        for named in ({}, keywords(view, "axis"), keywords(view, "dimension")):
            yield call(f"{where}.{view.name}", *operands, **named)


@LAX("tile")
def tile(view: View) -> Iterator[Expr]:
    for repeats in ("repeats", "reps"):
        if repeats in view.params:
            yield call("lax.tile", *view.operands, value(view.params[repeats]))
            yield call("jnp.tile", *view.operands, value(view.params[repeats]))


@LAX("split")
def split(view: View) -> Iterator[Expr]:
    yield call("lax.split", *view.operands, value(view.params["sizes"]), **keywords(view, "axis"))


@LAX("empty", "empty2")
def empty(view: View) -> Iterator[Expr]:
    (output,) = view.outputs
    yield call("lax.empty", value(output.shape), scalars.dtype(output.dtype))


@LAX("device_put")
def device_put(view: View) -> Iterator[Expr]:
    operands = view.operands[0] if len(view.operands) == 1 else list_(view.operands)
    devices = view.params.get("devices", ())
    if all(device is None for device in devices):
        yield call("jax.device_put", operands)
        yield call("jax.device_put", operands, may_alias=Atom("False"))
        yield call("jax.device_put", operands, may_alias=Atom("True"))
    elif len(set(devices)) == 1:
        yield call("jax.device_put", operands, value(devices[0]))
    else:
        yield call("jax.device_put", operands, list_(value(device) for device in devices))


@LAX("optimization_barrier")
def optimization_barrier(view: View) -> Iterator[Expr]:
    if len(view.operands) == 1:
        yield call("lax.optimization_barrier", *view.operands)
    from jaxsight.sourcerizer.text.exprs import tuple_

    yield call("lax.optimization_barrier", tuple_(view.operands))
