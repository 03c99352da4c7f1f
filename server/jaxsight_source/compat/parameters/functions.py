"""The options of a jitted function. Applies to JAX 0.8 to 0.12.

Private API used: `_jit_info` of a jitted function (a `PjitInfo`), including its
`compiler_options_kvs`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from jaxsight_source.compat.equations import is_unspecified


@dataclass(frozen=True, slots=True)
class Told:
    """The names of the static and the donated parameters of a jitted function."""

    static: frozenset[str] = frozenset()
    donated: frozenset[str] = frozenset()
    by_position: bool = False
    """Whether some are known by their positions."""


def told(function: Callable[..., object]) -> Told:
    """Return the static and donated parameters, as `inspect.signature` names them.

    There are none for a function that is not jitted.
    """
    info = getattr(function, "_jit_info", None)
    if info is None:
        return Told()
    # Bound methods forward attributes of their function, but hide its first parameter.
    hidden = ("self",) * isinstance(function, types.MethodType)
    parameters = (*hidden, *inspect.signature(function).parameters)

    def declared(prefix: str) -> tuple[frozenset[str], bool]:
        positions = tuple(getattr(info, f"{prefix}_argnums", None) or ())
        named = getattr(info, f"{prefix}_argnames", None) or ()
        places = [at for at in positions if -len(parameters) <= at < len(parameters)]
        return frozenset([*named, *(parameters[at] for at in places)]), bool(positions)

    (static, first), (donated, second) = declared("static"), declared("donate")
    return Told(static, donated, first or second)


def is_jitted(function: Callable[..., object]) -> bool:
    return hasattr(function, "_jit_info")


def compiler_options(function: Callable[..., object]) -> dict[str, Any]:
    """Return the compiler options of a jitted function, which its jaxpr does not contain."""
    info = getattr(function, "_jit_info", None)
    return dict(getattr(info, "compiler_options_kvs", ()) or ())


def traceable(function: Callable[..., object]) -> Callable[..., Any]:
    """Return the function without compiler options, which JAX only accepts at the top level."""
    if not is_jitted(function) or isinstance(function, types.MethodType):
        return function
    if not compiler_options(function):
        return function
    jitted: Any = function
    info = jitted._jit_info
    if not all(map(is_unspecified, (*info.in_shardings_leaves, *info.out_shardings_leaves))):
        return function  # JAX rejects it inside another function, with a clear error
    return jax.jit(
        jitted.__wrapped__,
        static_argnums=info.static_argnums,
        static_argnames=info.static_argnames,
        donate_argnums=info.donate_argnums,
        donate_argnames=info.donate_argnames,
        keep_unused=info.keep_unused,
    )
