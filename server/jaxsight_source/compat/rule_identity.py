"""Tells whether the rules of two custom derivatives are the same functions.

Applies to JAX 0.8 to 0.12.

Private API used: parameters of `custom_jvp_call` (`jvp_jaxpr_fun`) and `custom_vjp_call`
(`fwd_jaxpr_thunk`, `bwd`), `lu.WrappedFun`, `util.Hashable`, `util.Unhashable`.
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeGuard

import jax
from jax._src import linear_util as lu
from jax._src import util

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.jaxprs.contents import Identity, cell_contents


def is_wrapped_function(value: object) -> TypeGuard[lu.WrappedFun]:
    return isinstance(value, lu.WrappedFun)


_WRAPPERS = ("jax._src.util", "jax._src.linear_util", "jax._src.api_util", "jax._src.callback")


def is_wrapper(value: object) -> bool:
    """Return whether a JAX object wraps a user's object and uses the `==` of that object."""
    return type(value).__module__ in _WRAPPERS


def rule_identity(params: Params) -> Hashable:
    """Return a key for the user's derivative rule: its identity, with its static arguments.

    Rules call their own function, and so contain themselves.
    """
    rule = _innermost(params.get("jvp_jaxpr_fun") or params["bwd"])
    static = [_static(value) for _, args in rule.transforms for value in _static_arguments(args)]
    return (Identity(rule.f), *static)


def _static_arguments(args: Iterable[object]) -> Iterator[object]:
    """Yield the static arguments that JAX wraps among `args`."""
    for arg in args:
        if isinstance(arg, (tuple, list)):
            yield from _static_arguments(arg)
        elif isinstance(arg, (util.Hashable, util.Unhashable)):
            yield arg.val


def _static(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:
        leaves, tree = jax.tree.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            return Identity(value)
        return (tree, *map(_static, leaves))
    return (type(value), value, repr(value) if isinstance(value, float) else "")  # -0.0 is not 0.0


def _innermost(rule: lu.WrappedFun) -> lu.WrappedFun:
    while (inside := _wrapped_inside(rule.f)) is not None:
        rule = inside
    return rule


def rules_key(params: Params) -> Hashable:
    """Return a key for the rules of a custom derivative: the user's functions and static arguments.

    Equal keys belong to equal rules; hashing a key may raise `TypeError`.
    """
    rules = [params[key] for key in ("jvp_jaxpr_fun", "bwd", "fwd_jaxpr_thunk") if key in params]
    return tuple(_rule_key(_innermost(rule)) for rule in rules)


def _rule_key(rule: lu.WrappedFun) -> Hashable:
    transforms = [
        (str(name), *(arg for arg in args if not isinstance(arg, types.FunctionType)))
        for name, args in rule.transforms
        if not _adds_nothing(name, args)
    ]  # functions among the arguments store a call's results: they differ from call to call
    return (rule.f, *transforms)


def _adds_nothing(transformation: object, args: tuple[object, ...]) -> bool:
    """Return whether a transformation only adds the cotangents of zero captured values.

    JAX wraps the backward rule in one each time that the equation is bound again
    (`custom_derivatives.py`).
    """
    return getattr(transformation, "__name__", "") == "_handle_consts_in_bwd" and args == ([],)


def same_rule(original: Params, copy: Params) -> bool:
    """Return whether a custom derivative's rule is that of another, which was evaluated again.

    Return False if that is not known.
    """
    rule: lu.WrappedFun
    candidate: lu.WrappedFun | None
    rule, candidate = (
        params.get("jvp_jaxpr_fun") or params["fwd_jaxpr_thunk"] for params in (original, copy)
    )
    while candidate is not None:
        if candidate is rule or candidate.f is rule.f:
            return not candidate.transforms and not rule.transforms
        if candidate.transforms:
            return False
        candidate = _wrapped_inside(candidate.f)
    return False


_MEMO_DEPTH = 3
"""Closures between a wrapped function and the one that it was made from, such as `_memoize`'s."""


def _wrapped_inside(function: object, depth: int = _MEMO_DEPTH) -> lu.WrappedFun | None:
    for cell in getattr(function, "__closure__", None) or ():
        value = cell_contents(cell)
        if isinstance(value, lu.WrappedFun):
            return value
        if depth and (getattr(value, "__module__", None) or "").startswith("jax._src"):
            inside = _wrapped_inside(value, depth - 1)
            if inside is not None:
                return inside
    return None
