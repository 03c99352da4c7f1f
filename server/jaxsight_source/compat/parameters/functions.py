"""The options of a jitted function. Applies to JAX 0.8 to 0.12.

Private API used: `_jit_info` of a jitted function (a `PjitInfo`), including its
`compiler_options_kvs`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax

from jaxsight_source.compat.equations import is_unspecified


@dataclass(frozen=True, slots=True)
class Told:
    """The static and the donated arguments of a jitted function."""

    positions: frozenset[int]
    names: frozenset[str]
    donated: frozenset[int]
    donated_names: frozenset[str]


_NOTHING = Told(frozenset(), frozenset(), frozenset(), frozenset())


def told(function: Callable[..., object]) -> Told:
    """Return the static and donated arguments, by the parameters of `inspect.signature`.

    There are none for a function that is not jitted.
    """
    info = getattr(function, "_jit_info", None)
    if info is None:
        return _NOTHING
    # Bound methods forward attributes of their function, but hide its first parameter.
    hidden = int(isinstance(function, types.MethodType))
    count = len(inspect.signature(function).parameters) + hidden

    def positions(declared: Iterable[int] | None) -> frozenset[int]:
        nonnegative = (
            position + count if position < 0 else position for position in declared or ()
        )
        return frozenset(position - hidden for position in nonnegative if position >= hidden)

    def names(declared: Iterable[str] | None) -> frozenset[str]:
        return frozenset(declared or ())

    return Told(
        positions(getattr(info, "static_argnums", ())),
        names(getattr(info, "static_argnames", ())),
        positions(getattr(info, "donate_argnums", ())),
        names(getattr(info, "donate_argnames", ())),
    )


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
