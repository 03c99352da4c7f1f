"""Reads the parameters of control-flow equations and of custom rules.

Applies to JAX 0.8 to 0.12.

Private API used: parameters of `scan` (`num_consts` and `num_carry`, from 0.11 on `ft_in`),
`custom_jvp_call` (`jvp_jaxpr_fun`) and `custom_vjp_call` (`fwd_jaxpr_thunk`, `bwd`, `out_trees`),
`lu.WrappedFun`, `ad.Zero`, `HiPrim.params`, `util.Hashable`, closures of `Traced.closure_convert`.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
from jax._src import linear_util as lu
from jax._src import sharding_impls, util
from jax._src.interpreters import ad as _ad
from jax.custom_derivatives import SymbolicZero

from jaxsight.interpreters.compat.memos import undisturbed
from jaxsight.interpreters.compat.staging import (
    Program,
    Staged,
    closed,
    is_jaxpr,
    opened,
    stage,
)
from jaxsight.interpreters.contents import Identity

_ZERO: Any = getattr(_ad, "Zero")  # noqa: B009 - not in `__all__` of its module
_UNSPECIFIED: Any = getattr(sharding_impls, "UnspecifiedValue")  # noqa: B009

is_subtype: Any = getattr(jax.dtypes, "issubdtype")  # noqa: B009
"""`numpy.issubdtype` that also knows JAX's dtypes."""


def is_unspecified(value: Any) -> bool:
    """Return whether a sharding is one that `jit` was not given."""
    return isinstance(value, _UNSPECIFIED)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scan:
    """The parameters of a scan, independent of the JAX version.

    `consts` and `carry` count operands; `length` counts iterations.
    """

    consts: int
    carry: int
    body: Program
    length: int
    reverse: bool
    unroll: Any
    split_transpose: bool


def scan(params: dict[str, Any]) -> Scan:
    """Read the parameters of a `scan`."""
    if "ft_in" in params:
        consts, carry, _ = params["ft_in"].unpack()
        counts = len(consts), len(carry)
    else:
        counts = params["num_consts"], params["num_carry"]
    return Scan(
        *counts,
        opened(params["jaxpr"]),
        params["length"],
        params["reverse"],
        params["unroll"],
        params.get("_split_transpose", False),
    )


SOLVES = ("matvec", "vecmat", "solve", "transpose_solve")
"""The functions of a linear solve, in the order of the values that they capture."""


def solves(
    params: dict[str, Any], operands: Sequence[T]
) -> Iterator[tuple[Program | None, Sequence[T]]]:
    """Yield each function of a `custom_linear_solve`, with the operands that it captures.

    The order is that of `SOLVES`; a function that the solve does not have is None.
    """
    start = 0
    for name in SOLVES:
        count = getattr(params["const_lengths"], name)
        program = getattr(params["jaxprs"], name)
        yield None if program is None else opened(program), operands[start : start + count]
        start += count


def is_wrapped_function(value: Any) -> bool:
    return isinstance(value, lu.WrappedFun)


@dataclass(frozen=True, slots=True)
class Rule:
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


_WRAPPERS = ("jax._src.util", "jax._src.linear_util", "jax._src.api_util", "jax._src.callback")


def is_wrapper(value: Any) -> bool:
    """Return whether a JAX object wraps a user's object and uses the `==` of that object."""
    return type(value).__module__ in _WRAPPERS


def rule_identity(params: dict[str, Any]) -> Hashable:
    """Return a key for the user's derivative rule: its identity, with its static arguments.

    Rules call their own function, and so contain themselves.
    """
    rule = _innermost(params.get("jvp_jaxpr_fun") or params["bwd"])
    return (
        Identity(rule.f),
        *(_static(arg) for _, args in rule.transforms for arg in _leaves(args)),
    )


def _leaves(args: Any) -> Iterator[Any]:
    """Yield the static arguments that JAX wraps among `args`."""
    for arg in args:
        if isinstance(arg, (tuple, list)):
            yield from _leaves(arg)
        elif isinstance(arg, (util.Hashable, util.Unhashable)):
            yield arg.val


def _static(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        leaves, tree = jax.tree.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            return Identity(value)
        return (tree, *map(_static, leaves))
    return (type(value), value, repr(value) if isinstance(value, float) else "")  # -0.0 is not 0.0


def _innermost(rule: Any) -> Any:
    while (inside := _wrapped_inside(rule.f)) is not None:
        rule = inside
    return rule


def rules_key(params: dict[str, Any]) -> Hashable:
    """Return a key for the rules of a custom derivative: the user's functions and static arguments.

    Equal keys belong to equal rules; hashing a key may raise `TypeError`.
    """
    rules = [params[key] for key in ("jvp_jaxpr_fun", "bwd", "fwd_jaxpr_thunk") if key in params]
    return tuple(_rule_key(_innermost(rule)) for rule in rules)


def _rule_key(rule: Any) -> Hashable:
    told = [
        (str(name), *(arg for arg in args if not isinstance(arg, types.FunctionType)))
        for name, args in rule.transforms
        if not _adds_nothing(name, args)
    ]  # functions among the arguments store a call's results: they differ from call to call
    return (rule.f, *told)


def _adds_nothing(transformation: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a transformation only adds the cotangents of zero captured values.

    JAX wraps the backward rule in one each time that the equation is bound again
    (`custom_derivatives.py`).
    """
    return getattr(transformation, "__name__", "") == "_handle_consts_in_bwd" and args == ([],)


def same_rule(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a custom derivative's rule is that of another, which was evaluated again.

    Return False if that is not known.
    """
    asked, made = (
        params.get("jvp_jaxpr_fun") or params["fwd_jaxpr_thunk"] for params in (one, other)
    )
    while made is not None:
        if made is asked or made.f is asked.f:
            return not made.transforms and not asked.transforms
        if made.transforms:
            return False
        made = _wrapped_inside(made.f)
    return False


_MEMO_DEPTH = 3
"""Closures between a wrapped function and the one that it was made from."""


def _wrapped_inside(function: Any, depth: int = _MEMO_DEPTH) -> Any:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue  # not set yet
        if isinstance(held, lu.WrappedFun):
            return held
        if depth and (getattr(held, "__module__", None) or "").startswith("jax._src"):
            found = _wrapped_inside(held, depth - 1)
            if found is not None:
                return found
    return None


def differentiable(params: dict[str, Any]) -> list[bool]:
    """Return which inputs of a function with a custom rule can have tangents.

    Tangents of integers are always zero.
    """
    inputs = opened(params["call_jaxpr"]).jaxpr.invars[int(params["num_consts"]) :]
    return [getattr(_tangent(var.aval), "dtype", None) != jax.dtypes.float0 for var in inputs]


def _tangent(aval: Any) -> Any:
    return aval.to_tangent_aval()


def jvp_inputs(params: dict[str, Any]) -> int:
    """Return how many possibly nonzero tangents the rule of a `custom_jvp_call` takes."""
    return sum(differentiable(params))


def jvp_rule(params: dict[str, Any], absent: Sequence[bool] | None = None) -> Rule:
    """Return the rule of a `custom_jvp_call`, from primals and tangents to primals and tangents.

    Tangents that are symbolic zeros are neither inputs nor results.

    Args:
        absent: which tangents are symbolic zeros; by default, none.

    Raises:
        Refused: with the error of the rule.
    """
    flags = absent if absent is not None else (False,) * len(differentiable(params))
    rule = params["jvp_jaxpr_fun"]
    with _asking(), undisturbed(rule, always=False):
        jaxpr, consts, zeros = rule.call_wrapped(*flags)
    return Rule(closed(jaxpr, consts), tuple(zeros))


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """Turn any error of a user's rule into `Refused`, with the first line of its text."""
    try:
        yield
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise Refused(f"{type(error).__name__}: {said[0]}") from error


MOST_PATTERNS = 4
"""The largest number of tangents of which all patterns of symbolic zeros are evaluated."""


def absences(params: dict[str, Any]) -> list[tuple[bool, ...]] | None:
    """Return the patterns of symbolic zeros for which a jvp rule is evaluated, no zeros first.

    JAX evaluates it for no others: tangents of integers are always zero, and the tangents are never
    all zero. Return None if there are too many patterns.
    """
    may_be = differentiable(params)
    if not params["symbolic_zeros"]:
        return [(False,) * len(may_be)]
    patterns = _patterns(sum(may_be))
    if patterns is None:
        return None
    flags = map(iter, patterns)
    return [tuple(next(flag) if one else True for one in may_be) for flag in flags]


def _patterns(count: int) -> list[tuple[bool, ...]] | None:
    """Return the ways to make some of `count` values symbolic zeros, none first and never all."""
    if count > MOST_PATTERNS:
        return None
    return list(itertools.product((False, True), repeat=count))[: -1 if count else None]


def perturbations(
    params: dict[str, Any],
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
    unperturbed, absent = _patterns(sum(may_be)), _patterns(results)
    if unperturbed is None or absent is None:
        return None
    flags = map(iter, unperturbed)
    perturbed = [tuple(not next(flag) if one else False for one in may_be) for flag in flags]
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
    params: dict[str, Any],
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
    asked = params["fwd_jaxpr_thunk"], params["bwd"], params["out_trees"]
    with undisturbed(*asked, always=params["symbolic_zeros"]):
        return _vjp_rules(params, perturbed, absent)


def _vjp_rules(
    params: dict[str, Any], perturbed: Sequence[bool] | None, absent: Sequence[bool] | None
) -> VjpRules:
    call = opened(params["call_jaxpr"]).jaxpr
    inputs = call.invars[params["num_consts"] :]
    with _asking():
        flags = differentiable(params) if perturbed is None else perturbed
        jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*flags)
    forward = closed(jaxpr, consts)
    found = params["out_trees"]()
    out_tree, res_tree = found[0], found[1]
    given = found[2] if len(found) > 2 else (None,) * res_tree.num_leaves
    captured = params["num_consts"]  # positions count captured values, which are never residuals
    forwards = tuple(None if source is None else source - captured for source in given)
    kept = iter(jaxpr.outvars)
    residuals = [next(kept).aval if source is None else inputs[source].aval for source in forwards]
    cotangents = [var.aval.to_tangent_aval() for var in call.outvars]
    if len(cotangents) != out_tree.num_leaves:
        raise Unreadable("the rule of a custom_vjp returns other results than its function")
    zeros: list[bool] = []
    zero_cotangents = absent or (False,) * len(cotangents)

    def backward(*args: Any) -> list[Any]:
        values = iter(args[len(residuals) :])
        given_cotangents = [
            SymbolicZero(aval) if zero else next(values)
            for aval, zero in zip(cotangents, zero_cotangents, strict=True)
        ]
        answered = params["bwd"].call_wrapped(*args[: len(residuals)], *given_cotangents)
        results = answered[0] if _has_logs(answered) else answered
        zeros[:] = [isinstance(result, _ZERO) for result in results]
        return [result for result in results if not isinstance(result, _ZERO)]

    with _asking():
        nonzero = [a for a, zero in zip(cotangents, zero_cotangents, strict=True) if not zero]
        staged: Staged = stage(backward, [*residuals, *nonzero])
    program = closed(staged.program.jaxpr, staged.program.consts)
    return VjpRules(forward, len(forwards), forwards, program, tuple(zeros))


def _has_logs(answered: Any) -> bool:
    """Return whether a backward rule returned cotangents and logs, as it does from JAX 0.12 on."""
    return isinstance(answered, tuple) and len(answered) == 2 and isinstance(answered[0], list)


def is_key(aval: Any) -> bool:
    """Return whether an abstract value is an array of typed PRNG keys."""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and is_subtype(dtype, jax.dtypes.prng_key)


def key_impl(dtype: Any) -> str:
    """Return the name of a key dtype's implementation, as `jax.random.key(impl=…)` takes it."""
    return str(dtype._impl.name)


def high(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the class name and the parameters of a `call_hi_primitive`'s object (JAX 0.12)."""
    found = params["_prim"]
    given = {**vars(found), **dict(getattr(found, "params", {}))}
    return type(found).__name__, given


@dataclass(frozen=True, slots=True)
class Root:
    """A `lax.custom_root` (from JAX 0.12 on).

    The inputs of each program are the values that it captures, then its arguments: those of
    `tangent` are the roots and the right-hand side. `captured` holds the operands of the equation
    that each program captures, `guess` the operands that hold the initial guess, and `results` the
    tree of the results.
    """

    function: Program
    solve: Program
    tangent: Program
    captured: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    guess: Sequence[Any]
    results: Any
    has_aux: bool


def root(equation: Any) -> Root | None:
    """Read a `CustomRoot`.

    Returns:
        None for other equations, for a `vmap` of a root, and if the roots, or the solver's other
        results, are neither a single array nor a tuple of arrays.
    """
    name, given = high(equation.params)
    functions = [given.get(key) for key in ("f", "solve", "tangent_solve")]
    if name != "CustomRoot" or not all(map(_is_converted, functions)):
        return None
    solve, guess, function, tangent = given["in_avals"]
    outputs: Any = jax.tree.structure(given["out_aval"])
    results = jax.tree.unflatten(outputs, range(outputs.num_leaves))
    if not (_of_tuples(guess) and _of_tuples(results)):
        return None
    operands = iter(equation.invars)
    parts = [
        list(itertools.islice(operands, len(jax.tree.leaves(each))))
        for each in (solve, guess, function, tangent)
    ]
    captured = parts[2], parts[0], parts[3]
    found, solver, solver_of_tangents = map(_converted, functions)
    return Root(found, solver, solver_of_tangents, captured, parts[1], results, given["has_aux"])


@dataclass(frozen=True, slots=True)
class RootMap:
    """The derivative of a root's function, which `lax.custom_root` passes to `tangent_solve`.

    `function` is that function; the map is linear in the last `count` operands.
    """

    function: Program
    count: int
    transposed: bool


def root_map(equation: Any) -> RootMap | None:
    """Read a `_RootLinearMap`; return None for other equations."""
    name, given = high(equation.params)
    if name != "_RootLinearMap":
        return None
    function = next(_converted_within(given["f"]), None)
    if function is None:
        return None
    count = len(jax.tree.leaves(given["in_avals"][2]))
    return RootMap(function, count, given["transposed"])


def _converted_within(function: Any) -> Iterator[Program]:
    """Yield the programs of a closure-converted function, under any number of `vmap`s."""
    if _is_converted(function):
        yield _converted(function)
        return
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            yield from _converted_within(cell.cell_contents)


def _of_tuples(tree: Any) -> bool:
    if not isinstance(tree, tuple):
        return tree is not None and jax.tree.leaves(tree) == [tree]
    return type(tree) is tuple and all(map(_of_tuples, tree))


def _is_converted(function: Any) -> bool:
    """Return whether a function is a result of `Traced.closure_convert`."""
    name = str(getattr(function, "__qualname__", ""))
    return name.startswith("_closure_converted_fun.") and len(_held_jaxprs(function)) == 1


def _held_jaxprs(function: Any) -> list[Any]:
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    return [each for each in held if is_jaxpr(each)]


def _converted(function: Any) -> Program:
    """Return the program of a closure-converted function."""
    (jaxpr,) = _held_jaxprs(function)
    return opened(jaxpr)


def held_by_high(value: Any) -> dict[str, Any] | None:
    """Return the parameters of a high-level primitive's object, or None for anything else."""
    held = getattr(value, "params", None)
    return dict(held) if hasattr(value, "expand") and isinstance(held, dict) else None
