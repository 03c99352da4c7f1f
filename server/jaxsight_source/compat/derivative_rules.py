"""Traces the rules of custom derivatives. Applies to JAX 0.8 to 0.12.

Private API used: parameters of `custom_jvp_call` (`jvp_jaxpr_fun`) and `custom_vjp_call`
(`fwd_jaxpr_thunk`, `bwd`, `out_trees`), `ad.Zero`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import jax
from jax._src.core import AbstractValue
from jax._src.interpreters import ad as _ad
from jax.custom_derivatives import SymbolicZero

from jaxsight_source.compat.jaxpr_types import Params
from jaxsight_source.compat.memos import undisturbed
from jaxsight_source.compat.staging import Program, Staged, closed, opened, stage

_ZERO: type = getattr(_ad, "Zero")  # noqa: B009 - not in `__all__` of its module


@dataclass(frozen=True, slots=True)
class DerivativeRule:
    """The derivative rule of a custom derivative, as a program.

    `zeros` holds, for each result, whether it is a symbolic zero.
    """

    program: Program
    zeros: tuple[bool, ...]


class Refused(Exception):
    """A rule raised an error when it was traced."""


class Outlived(Refused):
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


def jvp_rule(params: Params, absent: Sequence[bool]) -> DerivativeRule:
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
    return DerivativeRule(closed(jaxpr, consts), tuple(zeros))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn any error of a user's rule into `Refused`, with the first line of its text."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise Refused(f"{type(error).__name__}: {lines[0]}") from error


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


def perturbations(
    params: Params,
) -> list[tuple[tuple[bool, ...], tuple[bool, ...]]] | None:
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

    `forward` returns the residuals that are not inputs, then the results. There are `residuals`
    residuals in all; `forwarded` holds, for each, the index of the input that it is, or None.
    `backward` takes all residuals, then the cotangents; it returns the cotangents of the inputs,
    except the symbolic zeros, which `zeros` marks.
    """

    forward: Program
    residuals: int
    forwarded: tuple[int | None, ...]
    backward: Program
    zeros: tuple[bool, ...]


def vjp_rules(
    params: Params,
    perturbed: Sequence[bool] | None = None,
    absent: Sequence[bool] | None = None,
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
        return _vjp_rules(params, perturbed, absent)


def _vjp_rules(
    params: Params, perturbed: Sequence[bool] | None, absent: Sequence[bool] | None
) -> VjpRules:
    call = opened(params["call_jaxpr"]).jaxpr
    inputs = call.invars[params["num_consts"] :]
    with _refusals():
        flags = differentiable(params) if perturbed is None else perturbed
        jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*flags)
    forward = closed(jaxpr, consts)
    out_tree, res_tree, *forwarding = params["out_trees"]()
    sources = forwarding[0] if forwarding else (None,) * res_tree.num_leaves
    captured = params["num_consts"]  # positions count captured values, which are never residuals
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
    return VjpRules(forward, len(forwards), forwards, program, tuple(zeros))
