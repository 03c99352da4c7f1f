"""Traces the rules of custom derivatives. Applies to JAX 0.8 to 0.12.

Private API used: parameters of `custom_jvp_call` (`jvp_jaxpr_fun`) and `custom_vjp_call`
(`fwd_jaxpr_thunk`, `bwd`, `out_trees`), `ad.Zero`.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import jax
from jax._src import linear_util as lu
from jax._src import util
from jax._src.core import AbstractValue
from jax._src.interpreters import ad as _ad
from jax.custom_derivatives import SymbolicZero

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.compat.staging import Program, Staged, closed, opened, stage
from jaxsight_source.jaxprs.contents import Identity, cell_contents

_ZERO: type = getattr(_ad, "Zero")  # noqa: B009 - not in `__all__` of its module


class RuleFailed(Exception):
    """A rule raised an error when it was traced."""


class Outlived(RuleFailed):
    """A rule captures values of a finished trace whose programs are not available."""


class Unreadable(Exception):
    """A rule has a form that jaxsight does not support."""


def differentiable(params: Params) -> list[bool]:
    """Return which inputs of a function with a custom rule can have tangents.

    Tangents of integers are always zero.
    """
    inputs = opened(params["call_jaxpr"]).jaxpr.invars[int(params["num_consts"]) :]
    return [
        getattr(var.aval.to_tangent_aval(), "dtype", None) != jax.dtypes.float0 for var in inputs
    ]


def jvp_rule(params: Params, absent: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """Return the rule of a `custom_jvp_call`, from primals and tangents to primals and tangents.

    Tangents that are symbolic zeros are neither inputs nor results.

    Args:
        absent: which tangents are symbolic zeros.

    Raises:
        Refused: with the error of the rule.
    """
    rule = params["jvp_jaxpr_fun"]
    with _refusals(), undisturbed(rule, always=False):
        jaxpr, consts, zeros = rule.call_wrapped(*absent)
    return closed(jaxpr, consts), tuple(zeros)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn any error of a user's rule into `RuleFailed`, with the first line of its text."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise RuleFailed(f"{type(error).__name__}: {lines[0]}") from error


MOST_PATTERNS = 4
"""Tangents of which all patterns of symbolic zeros are evaluated: 2**4 traces of a rule."""


def absences(params: Params) -> list[tuple[bool, ...]] | None:
    """Return the patterns of symbolic zeros for which a jvp rule is evaluated, no zeros first.

    JAX evaluates it for no others (`process_custom_jvp_call` in jax/_src/interpreters/ad.py):
    tangents of integers are always zero, and never all. Return None if there are too many patterns.
    """
    may_be = differentiable(params)
    if not params["symbolic_zeros"]:
        return [(False,) * len(may_be)]
    return _absent(may_be)


def _absent(may_be: Sequence[bool]) -> list[tuple[bool, ...]] | None:
    """Return the patterns of symbolic zeros of tangents, of which some are always zero."""
    patterns = _patterns(sum(may_be))
    if patterns is None:
        return None
    flags = map(iter, patterns)
    return [tuple(not may or next(flag) for may in may_be) for flag in flags]


def _patterns(count: int) -> list[tuple[bool, ...]] | None:
    """Return the ways to make some of `count` values symbolic zeros, none first and never all."""
    if count > MOST_PATTERNS:
        return None
    return list(itertools.product((False, True), repeat=count))[: -1 if count else None]


def perturbations(params: Params) -> list[tuple[tuple[bool, ...], tuple[bool, ...]]] | None:
    """Return the patterns for which the rules of a `custom_vjp_call` are evaluated.

    A pattern says which inputs are perturbed, and which cotangents are symbolic zeros. Return None
    if there are too many.

    Rules that did not request symbolic zeros receive none (`jax.custom_vjp.defvjp`).
    """
    may_be = differentiable(params)
    results = len(opened(params["call_jaxpr"]).jaxpr.outvars)
    if not params["symbolic_zeros"]:
        return [(tuple(may_be), (False,) * results)]
    unperturbed, absent = _absent(may_be), _patterns(results)
    if unperturbed is None or absent is None:
        return None
    perturbed = [tuple(not is_zero for is_zero in pattern) for pattern in unperturbed]
    return list(itertools.product(perturbed, absent))


@dataclass(frozen=True, slots=True)
class VjpRules:
    """Both rules of a `custom_vjp_call`.

    `forward` returns the residuals that are not inputs, then the results. `forwarded` holds, for
    each residual, the index of the input that it is, or None.
    `backward` takes all residuals, then the cotangents; it returns the cotangents of the inputs,
    except the symbolic zeros, which `zeros` marks.
    """

    forward: Program
    forwarded: tuple[int | None, ...]
    backward: Program
    zeros: tuple[bool, ...]


def vjp_rules(
    params: Params, perturbed: Sequence[bool] | None = None, absent: Sequence[bool] | None = None
) -> VjpRules:
    """Trace both rules of a `custom_vjp_call`, as reverse-mode differentiation would.

    Args:
        perturbed: which inputs are perturbed; by default, all differentiable ones.
        absent: which cotangents are symbolic zeros; by default, none.

    Raises:
        Refused: with the error of a rule.
        Unreadable: if the rule's results do not have the structure of the function's.
    """
    functions = params["fwd_jaxpr_thunk"], params["bwd"], params["out_trees"]
    with undisturbed(*functions, always=params["symbolic_zeros"]):
        call = opened(params["call_jaxpr"]).jaxpr
        inputs = call.invars[params["num_consts"] :]
        with _refusals():
            flags = differentiable(params) if perturbed is None else perturbed
            jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*flags)
        forward = closed(jaxpr, consts)
        out_tree, res_tree, *forwarding = params["out_trees"]()
        sources = forwarding[0] if forwarding else (None,) * res_tree.num_leaves
        captured = params["num_consts"]  # which positions count, and which are never residuals
        forwards = tuple(None if source is None else source - captured for source in sources)
        outputs = iter(jaxpr.outvars)
        residuals = [
            next(outputs).aval if source is None else inputs[source].aval for source in forwards
        ]
        cotangents = [var.aval.to_tangent_aval() for var in call.outvars]
        if len(cotangents) != out_tree.num_leaves:
            raise Unreadable("the rule of a custom_vjp returns other results than its function")
        zeros: list[bool] = []
        zero_cotangents = absent or (False,) * len(cotangents)

        def backward(*args: object) -> list[object]:
            values = iter(args[len(residuals) :])
            all_cotangents = [
                SymbolicZero(cast(AbstractValue, aval)) if zero else next(values)
                for aval, zero in zip(cotangents, zero_cotangents, strict=True)
            ]
            returned = params["bwd"].call_wrapped(*args[: len(residuals)], *all_cotangents)
            # From JAX 0.12 on, a backward rule returns cotangents and logs.
            is_pair = isinstance(returned, tuple) and len(returned) == 2
            results = returned[0] if is_pair and isinstance(returned[0], list) else returned
            zeros[:] = [isinstance(result, _ZERO) for result in results]
            return [result for result in results if not isinstance(result, _ZERO)]

        with _refusals():
            nonzero = [a for a, zero in zip(cotangents, zero_cotangents, strict=True) if not zero]
            staged: Staged = stage(backward, [*residuals, *nonzero])
        program = closed(staged.program.jaxpr, staged.program.consts)
        return VjpRules(forward, forwards, program, tuple(zeros))


@dataclass(slots=True)
class _Memory:
    """The stores and caches that JAX's functions hold, with their contents at the time."""

    stores: list[tuple[lu.Store, Any]] = field(default_factory=list)
    memos: list[tuple[dict[object, object], dict[object, object]]] = field(default_factory=list)
    visited: set[int] = field(default_factory=set)

    def add(self, value: object) -> None:
        if id(value) in self.visited:
            return
        self.visited.add(id(value))
        match value:
            case lu.WrappedFun():
                args = (args for _, args in value.transforms)
                for inside in (*value.stores, value.f, *args):
                    self.add(inside)
            case lu.EqualStore():
                self.add(value._store)
            case lu.Store():
                self.stores.append((value, value._val))
            case tuple():
                for inside in value:
                    self.add(inside)
            case _ if (getattr(value, "__module__", None) or "").startswith("jax._src"):
                for cell in getattr(value, "__closure__", None) or ():
                    held = cell_contents(cell)
                    if isinstance(held, dict) and getattr(value, "__name__", "") == "memoized":
                        self.memos.append((held, dict(held)))
                    else:
                        self.add(held)

    def restore(self) -> None:
        for store, value in self.stores:
            store._val = value
        for memo, before in self.memos:
            memo.clear()
            memo.update(before)


@contextlib.contextmanager
def undisturbed(*rules: object, always: bool) -> Iterator[None]:
    """Restore what `rules` have cached if the block raises, or `always`.

    `always` is for rules whose results for two patterns have different tree structures.
    """
    memory = _Memory()
    for rule in rules:
        memory.add(rule)
    try:
        yield
    except BaseException:
        memory.restore()
        raise
    if always:
        memory.restore()


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
