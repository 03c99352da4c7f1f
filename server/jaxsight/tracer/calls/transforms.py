"""Apply JAX's transformations to a function, and return it with inputs to trace it with.

Values that are not arrays (a mode, a flag, a layer's activation) are passed unchanged; only arrays
are mapped and differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.leaves import ArraysIn, is_array
from jaxsight.tracer.calls.parameters import parameter, signed
from jaxsight.tracer.calls.stateful_call import StatefulCall
from jaxsight.tracer.calls.user_function import TraceableCall, UserFunction
from jaxsight.tracer.failures import refusal
from jaxsight.wire.messages.requests import MAPPED_SIZE
from jaxsight_source.compat import avals


def transformed(
    user_function: UserFunction,
    inputs: Inputs,
    function: str,
    transform: str,
    stateful: StatefulCall | None = None,
) -> TraceableCall:
    """Return `transform` (one of `TRANSFORMS`, or empty) of the function `function`.

    `stateful` is the function if it updates arrays in place: these are results of it and of its
    `jit`.
    Other transformations apply to its return value only.

    Raises:
        UserError: there is no argument to differentiate with respect to; its stage is
            `sourcerize`.
    """
    own = function.rpartition(".")[2]
    name = f"{own}_{transform}" if transform else own
    args, kwargs = inputs.args, inputs.kwargs
    if stateful is not None and transform in ("", "jit"):
        user_function = replace(user_function, call=stateful.pure)
        kwargs = {**kwargs, **stateful.extra}
    elif stateful is not None:
        pure = StatefulCall(user_function, inputs).pure
        user_function = replace(user_function, call=_returning(pure))
    call: Any = user_function.call
    match transform:
        case "":
            about = function
        case "grad" | "value_and_grad":
            by = _differentiable(args, function)
            differentiate: Any = jax.grad if transform == "grad" else jax.value_and_grad
            call = differentiate(call, argnums=by)
            about = f"{transform}({function}) with respect to {parameter(user_function, by)}"
        case "vmap":
            about = f"vmap({function}) over a new leading axis of {MAPPED_SIZE} in every array"
            args, kwargs = jax.tree_util.tree_map(_mapped, (args, kwargs))
            call = _vmap(call)
        case "jit":
            about, call = f"jit({function})", _jit(user_function, args, kwargs)
        case _:
            raise refusal("sourcerize", f"unknown transformation {transform}")
    return TraceableCall(call, args, kwargs, name, about)


def _returning(function: Callable[..., tuple[object, ...]]) -> Callable[..., object]:
    """Return a function that drops the state from the result of a function with state."""

    def returning(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)[0]

    return signed(returning, function)


def _differentiable(args: Sequence[object], function: str) -> int:
    """Return the position of the first argument that is all floating point."""
    for index, arg in enumerate(args):
        if _is_inexact(arg):
            return index
    words = "it has no positional argument that is all floating point"
    raise refusal("sourcerize", f"cannot differentiate {function}: {words}")


def _is_inexact(arg: object) -> bool:
    leaves = jax.tree_util.tree_leaves(arg)
    are_arrays = bool(leaves) and all(map(is_array, leaves))
    return are_arrays and all(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves)


def _mapped(leaf: object) -> object:
    """Return an array with a new leading axis, and other values unchanged."""
    if not is_array(leaf):
        return leaf
    aval = avals.of(leaf)
    return avals.struct((MAPPED_SIZE, *aval.shape), aval.dtype, avals.weak(aval))


def _vmap(function: Callable[..., object]) -> Callable[..., object]:
    """Return `jax.vmap` of a function, which maps arrays only, including keyword arguments."""

    def mapped(*args: object, **kwargs: object) -> object:
        call = ArraysIn.of((args, kwargs))

        def one(arrays: Sequence[object]) -> object:
            own_args, own_kwargs = call.filled(arrays)
            return function(*own_args, **own_kwargs)

        return jax.vmap(one)(call.arrays)

    return signed(mapped, function)


def _jit(
    user_function: UserFunction, args: tuple[object, ...], kwargs: dict[str, object]
) -> Callable[..., object]:
    """Return `jax.jit` of a function, with arguments without arrays as static ones."""
    if user_function.jitted:
        return user_function.call
    still = [index for index, arg in enumerate(args) if not _has_array(arg)]
    named = [name for name, arg in kwargs.items() if not _has_array(arg)]
    return jax.jit(user_function.call, static_argnums=still, static_argnames=named)


def _has_array(arg: object) -> bool:
    return any(map(is_array, jax.tree_util.tree_leaves(arg)))
