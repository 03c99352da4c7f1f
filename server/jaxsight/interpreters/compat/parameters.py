"""What equations of control flow and of custom rules keep in their parameters.

Holds for JAX 0.8 to 0.12.

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

_ZERO: Any = getattr(_ad, "Zero")  # noqa: B009 - its module says not that it exports it
_UNSPECIFIED: Any = getattr(sharding_impls, "UnspecifiedValue")  # noqa: B009

is_subtype: Any = getattr(jax.dtypes, "issubdtype")  # noqa: B009
"""`numpy.issubdtype` for JAX's dtypes too."""


def is_unspecified(value: Any) -> bool:
    """A sharding that `jit` was not given."""
    return isinstance(value, _UNSPECIFIED)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan, whichever way this JAX writes it down."""

    consts: int
    carry: int
    body: Program
    length: int
    reverse: bool
    unroll: Any
    split_transpose: bool


def scan(params: dict[str, Any]) -> Scan:
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
    """Each function of a `custom_linear_solve`, if it has it, with the operands that it
    captures.
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
    """A custom derivative's rule as a program.

    `zeros` says which of its results are symbolic zeros.
    """

    program: Program
    zeros: tuple[bool, ...]


class Refused(Exception):
    """A rule that cannot be had: it raises."""


class Outlived(Refused):
    """A rule that holds values of a trace that is over, of programs that are not at hand."""


class Unreadable(Exception):
    """A rule that is not understood."""


_WRAPPERS = ("jax._src.util", "jax._src.linear_util", "jax._src.api_util", "jax._src.callback")


def is_wrapper(value: Any) -> bool:
    """Whether an object of JAX's holds one of the user's, whose `==` it has for its own."""
    return type(value).__module__ in _WRAPPERS


def rule_identity(params: dict[str, Any]) -> Hashable:
    """The user's rule of a custom derivative, by identity, with the static arguments that it is
    given: rules call their own function, and so have themselves inside.
    """
    rule = _innermost(params.get("jvp_jaxpr_fun") or params["bwd"])
    return (
        Identity(rule.f),
        *(_static(arg) for _, args in rule.transforms for arg in _leaves(args)),
    )


def _leaves(args: Any) -> Iterator[Any]:
    """What JAX wraps of arguments that are no arrays."""
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
    """What tells the rules of two custom derivatives of equal programs apart: the user's functions,
    and what they are given besides arrays.

    Two keys that are equal are of equal rules; hashing one may raise `TypeError`.
    """
    rules = [params[key] for key in ("jvp_jaxpr_fun", "bwd", "fwd_jaxpr_thunk") if key in params]
    return tuple(_rule_key(_innermost(rule)) for rule in rules)


def _rule_key(rule: Any) -> Hashable:
    told = [
        (str(name), *(arg for arg in args if not isinstance(arg, types.FunctionType)))
        for name, args in rule.transforms
        if not _adds_nothing(name, args)
    ]  # functions among them take what a call leaves behind: each call has its own
    return (rule.f, *told)


def _adds_nothing(transformation: Any, args: tuple[Any, ...]) -> bool:
    """Whether it only adds cotangents of captured values, of which there are none: each time that
    an equation is bound again JAX wraps its backward rule so (`custom_derivatives.py`)."""
    return getattr(transformation, "__name__", "") == "_handle_consts_in_bwd" and args == ([],)


def same_rule(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the rule of a custom derivative is that of another one, which was evaluated once
    more. False where that is not known.
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
    """Which inputs of a function with rules of its own can have tangents: integers' are always
    zero.
    """
    inputs = opened(params["call_jaxpr"]).jaxpr.invars[int(params["num_consts"]) :]
    return [getattr(_tangent(var.aval), "dtype", None) != jax.dtypes.float0 for var in inputs]


def _tangent(aval: Any) -> Any:
    return aval.to_tangent_aval()


def jvp_inputs(params: dict[str, Any]) -> int:
    """How many tangents that may be other than zero the rule of a `custom_jvp_call` takes."""
    return sum(differentiable(params))


def jvp_rule(params: dict[str, Any], absent: Sequence[bool] | None = None) -> Rule:
    """The rule of a `custom_jvp_call`: primals then tangents, to the same, without symbolic zeros.

    Args:
        absent: which tangents are symbolic zeros; none of them when it is not given.

    Raises:
        Refused: with what the rule said.
    """
    flags = absent if absent is not None else (False,) * len(differentiable(params))
    rule = params["jvp_jaxpr_fun"]
    with _asking(), undisturbed(rule, always=False):
        jaxpr, consts, zeros = rule.call_wrapped(*flags)
    return Rule(closed(jaxpr, consts), tuple(zeros))


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """Around a rule of the user's, which may raise anything."""
    try:
        yield
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise Refused(f"{type(error).__name__}: {said[0]}") from error


MOST_PATTERNS = 4
"""Tangents that a rule for symbolic zeros may have to be asked for all patterns of them."""


def absences(params: dict[str, Any]) -> list[tuple[bool, ...]] | None:
    """Patterns of symbolic zeros that a jvp rule is asked for, the one without any first.

    Tangents of integers are zero in all of them, and never are all tangents: JAX asks for no
    others. None where they are too many to be asked for.
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
    """Ways to make some of `count` values symbolic zeros, but not all; none of them first."""
    if count > MOST_PATTERNS:
        return None
    return list(itertools.product((False, True), repeat=count))[: -1 if count else None]


def perturbations(
    params: dict[str, Any],
) -> list[tuple[tuple[bool, ...], tuple[bool, ...]]] | None:
    """What the rules of a `custom_vjp_call` are asked for: which inputs are perturbed, and which
    cotangents are symbolic zeros. None where there are too many ways.

    Rules that do not ask for symbolic zeros are told of none (`jax.custom_vjp.defvjp`).
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

    `forward` gives the residuals that are no inputs (`residuals` of them in all; `forwarded` holds,
    for each residual, the input that it is, or none), then the results. `backward` takes all
    residuals, then cotangents; its results are cotangents of the inputs, without those that are
    symbolic zeros by `zeros`.
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
    """Trace both rules, the way reverse differentiation would.

    Args:
        perturbed: which inputs are; every one that can be when it is not given.
        absent: which cotangents are symbolic zeros; none of them when it is not given.

    Raises:
        Refused: with what a rule said.
        Unreadable: for results that are not those of the function.
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
    captured = params["num_consts"]  # positions count them, though no residual can be one
    forwards = tuple(None if source is None else source - captured for source in given)
    kept = iter(jaxpr.outvars)
    residuals = [next(kept).aval if source is None else inputs[source].aval for source in forwards]
    cotangents = [var.aval.to_tangent_aval() for var in call.outvars]
    if len(cotangents) != out_tree.num_leaves:
        raise Unreadable("results of a custom_vjp that its rule does not give")
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
    """From 0.12 on a backward rule answers cotangents and logs."""
    return isinstance(answered, tuple) and len(answered) == 2 and isinstance(answered[0], list)


def is_key(aval: Any) -> bool:
    """An array of typed random keys."""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and is_subtype(dtype, jax.dtypes.prng_key)


def key_impl(dtype: Any) -> str:
    """The name of a key type's implementation, as `jax.random.key(impl=…)` takes it."""
    return str(dtype._impl.name)


def high(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The class and the parameters of the object that a `call_hi_primitive` (JAX 0.12) is of."""
    found = params["_prim"]
    given = {**vars(found), **dict(getattr(found, "params", {}))}
    return type(found).__name__, given


@dataclass(frozen=True, slots=True)
class Root:
    """A `lax.custom_root` (from JAX 0.12 on).

    The inputs of each program are values that it captures, then its arguments: those of `tangent`
    are the roots and the right hand side. `captured` are the operands of the equation that each
    captures, `guess` those that it begins with, and `results` how its results are nested.
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
        None for other equations, for what `vmap` made of one, and where the roots, or what its
        solver returns besides, are not a single array or a tuple of arrays.
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
    """The derivative of a root's function, which `lax.custom_root` gives to `tangent_solve`.

    `function` is that function, `count` says how many of the last operands the map is linear in.
    """

    function: Program
    count: int
    transposed: bool


def root_map(equation: Any) -> RootMap | None:
    """Read a `_RootLinearMap`; None for other equations."""
    name, given = high(equation.params)
    if name != "_RootLinearMap":
        return None
    function = next(_converted_within(given["f"]), None)
    if function is None:
        return None
    count = len(jax.tree.leaves(given["in_avals"][2]))
    return RootMap(function, count, given["transposed"])


def _converted_within(function: Any) -> Iterator[Program]:
    """Find the programs of a function that was converted, mapped any number of times or not."""
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
    """Whether it is what `Traced.closure_convert` makes of a function."""
    name = str(getattr(function, "__qualname__", ""))
    return name.startswith("_closure_converted_fun.") and len(_held_jaxprs(function)) == 1


def _held_jaxprs(function: Any) -> list[Any]:
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    return [each for each in held if is_jaxpr(each)]


def _converted(function: Any) -> Program:
    """The program of such a function."""
    (jaxpr,) = _held_jaxprs(function)
    return opened(jaxpr)


def held_by_high(value: Any) -> dict[str, Any] | None:
    """The parameters of such an object; None for anything else."""
    held = getattr(value, "params", None)
    return dict(held) if hasattr(value, "expand") and isinstance(held, dict) else None
