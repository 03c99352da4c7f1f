"""Apply JAX's transformations to a function, and return it with inputs to trace it with.

Values that are not arrays (a mode, a flag, a layer's activation) are passed unchanged; only arrays
are mapped and differentiated.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.interpreters.compat import avals
from jaxsight.tracer.failures import refusal
from jaxsight.tracer.function_lookup import Found, parameter
from jaxsight.tracer.inputs import Inputs, is_array
from jaxsight.tracer.states.stateful import Stateful
from jaxsight.wire.messages.requests import MAPPED_SIZE


@dataclass(frozen=True, slots=True)
class Call:
    """A function with the inputs to trace it with; `about` describes it for users."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    about: str


def transformed(
    found: Found, inputs: Inputs, function: str, transform: str, stateful: Stateful | None = None
) -> Call:
    """Return `transform` (one of `TRANSFORMS`, or empty) of the function `function`.

    `stateful` is the function if it updates arrays in place: these are results of it and of its
    `jit`.
    Other transformations apply to its return value only.

    Raises:
        UserError: there is no argument to differentiate with respect to, or no inverse; its stage
            is `sourcerize`.
    """
    own = function.rpartition(".")[2]
    name = f"{own}_{transform}" if transform else own
    args, kwargs = inputs.args, inputs.kwargs
    if stateful is not None and transform in ("", "jit"):
        found = replace(found, call=stateful.pure)
        kwargs = {**kwargs, **stateful.extra}
    elif stateful is not None:
        found = replace(found, call=_returning(Stateful(found, inputs).pure))
    match transform:
        case "":
            return Call(found.call, args, kwargs, name, function)
        case "grad" | "value_and_grad":
            by = _differentiable(args, function)[0]
            differentiate: Any = jax.grad if transform == "grad" else jax.value_and_grad
            told = f"{transform}({function}) with respect to {parameter(found, by)}"
            return Call(differentiate(found.call, argnums=by), args, kwargs, name, told)
        case "vmap":
            told = f"vmap({function}) over a new leading axis of {MAPPED_SIZE} in every array"
            args, kwargs = jax.tree_util.tree_map(_mapped, (args, kwargs))
            return Call(_vmap(found.call), args, kwargs, name, told)
        case "jvp":
            chosen = _differentiable(args, function)
            primals = tuple(args[index] for index in chosen)
            rest = [arg for index, arg in enumerate(args) if index not in chosen]
            told = f"jvp({function}) by {', '.join(parameter(found, index) for index in chosen)}"
            return Call(_jvp(found.call, chosen), (primals, primals, *rest), kwargs, name, told)
        case "jit":
            return Call(_jit(found, args, kwargs), args, kwargs, name, f"jit({function})")
        case "inverse":
            # Imported on first use, as few sessions need it.
            from jaxsight.tracer.handlers.inverse import inverted

            return inverted(found, inputs, function, name)
        case _:
            raise refusal("sourcerize", f"unknown transformation {transform}")


def _returning(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that drops the state from the result of a function with state."""

    def returning(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)[0]

    return _signed(returning, function)


def _differentiable(args: Sequence[Any], function: str) -> list[int]:
    """Return the positions of the arguments that are all floating point, at least one."""
    chosen = [index for index, arg in enumerate(args) if _is_inexact(arg)]
    if not chosen:
        words = (
            f"cannot differentiate {function}: it has no positional argument that is all floating "
            "point"
        )
        raise refusal("sourcerize", words)
    return chosen


def _is_inexact(arg: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(arg)
    return bool(leaves) and all(
        is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves
    )


def _mapped(leaf: Any) -> Any:
    """Return an array with a new leading axis, and other values unchanged."""
    if not is_array(leaf):
        return leaf
    aval = avals.of(leaf)
    return avals.struct((MAPPED_SIZE, *aval.shape), aval.dtype, avals.weak(aval))


def _vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `jax.vmap` of a function, which maps arrays only, including keyword arguments."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
        places = [index for index, leaf in enumerate(leaves) if is_array(leaf)]

        def one(arrays: Sequence[Any]) -> Any:
            whole = list(leaves)
            for index, array in zip(places, arrays, strict=True):
                whole[index] = array
            own_args, own_kwargs = jax.tree_util.tree_unflatten(structure, whole)
            return function(*own_args, **own_kwargs)

        return jax.vmap(one)([leaves[index] for index in places])

    return _signed(mapped, function)


def _jvp(function: Callable[..., Any], chosen: Sequence[int]) -> Callable[..., Any]:
    """Return a function of primals and tangents of the arguments `chosen`, then the others."""

    def jvp(primals: Any, tangents: Any, *rest: Any, **kwargs: Any) -> Any:
        def of_chosen(*given: Any) -> Any:
            own, others = iter(given), iter(rest)
            count = len(given) + len(rest)
            args = [next(own) if index in chosen else next(others) for index in range(count)]
            return function(*args, **kwargs)

        return jax.jvp(of_chosen, primals, tangents)

    return jvp


def _jit(found: Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """Return `jax.jit` of a function, with arguments without arrays as static ones."""
    if found.jitted:
        return found.call
    still = [index for index, arg in enumerate(args) if not _has_array(arg)]
    named = [name for name, arg in kwargs.items() if not _has_array(arg)]
    return jax.jit(found.call, static_argnums=still, static_argnames=named)


def _has_array(arg: Any) -> bool:
    return any(map(is_array, jax.tree_util.tree_leaves(arg)))


def _signed(function: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """Give `function` the name and the signature of `like`."""
    functools.update_wrapper(function, like, updated=())
    del function.__wrapped__  # type: ignore[attr-defined]
    with contextlib.suppress(TypeError, ValueError):  # not every callable has a signature
        function.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    return function
