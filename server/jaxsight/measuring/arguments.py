"""Values for arguments that are given by their types: finite, in range, and always the same.

Integers that are used as indices are drawn from the whole axis that they index: a table of which
eight rows are read stays in a cache, and would be faster than the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Aval, Equation, Jaxpr
from jaxsight_source.compat.staging import is_literal, open_jaxpr
from jaxsight_source.jaxprs.arguments import SMALL, drawn_array, normal_numbers

_BLOCK = 1_000_003
"""Numbers that are drawn; larger arrays repeat them, as drawing 10⁹ would take 20 seconds. It is a
prime, so that rows differ."""

_KEEPS = frozenset(
    {
        "add", "broadcast_in_dim", "clamp", "concatenate", "convert_element_type", "copy",
        "expand_dims", "max", "min", "pad", "reshape", "rev", "select_n", "slice", "squeeze", "sub",
        "transpose",
    }
)  # fmt: skip
"""Primitives whose result is an index if an operand is: they move it, or bring it into range."""


def repeated_numbers(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw from the standard normal distribution; large arrays repeat what is drawn."""
    if math.prod(shape) <= _BLOCK:
        return normal_numbers(generator, shape)
    return np.resize(generator.normal(size=_BLOCK).astype(np.float32), shape)


def arguments(
    jaxpr: object, names: Sequence[str], values: Mapping[str, object] | Sequence[object]
) -> tuple[list[object], list[str]]:
    """Return the flat arguments of a program, and the names of those that are random.

    Args:
        jaxpr: the program.
        names: the names of its flat arguments; fewer if they are not known.
        values: the user's own values by name, or for each argument; one of another type is not
            used.
    """
    opened = open_jaxpr(jaxpr)
    limits = index_limits(opened)
    generator = np.random.default_rng(0)
    flat: list[object] = []
    random: list[str] = []
    for at, var in enumerate(opened.invars):
        name = names[at] if at < len(names) else ""
        known = values.get(name) if isinstance(values, Mapping) else values[at]
        if known is not None and _is_like(known, var.aval):
            flat.append(known)
            continue
        limit = limits.get(at)
        integers = SMALL if limit is None else (0, limit)
        value = drawn_array(var.aval, generator, numbers=repeated_numbers, integers=integers)
        flat.append(value)
        random.append(name or f"argument {at}")
    return flat, random


def _is_like(value: object, aval: Aval) -> bool:
    try:
        array = value if isinstance(value, jax.Array) else jnp.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return array.shape == aval.shape and (
        array.dtype == aval.dtype or isinstance(value, bool | int | float | complex)
    )


def index_limits(jaxpr: Jaxpr) -> dict[int, int]:
    """Return for each input that is used as an index the least size of what it indexes.

    Inputs are given by their number. A class that `one_hot` compares with `iota` is an index, too.
    """
    limits: dict[int, int] = {}
    sources = {id(var): {at} for at, var in enumerate(jaxpr.invars) if _is_integer(var.aval)}
    _follow(jaxpr, sources, {}, limits)
    return limits


def _follow(
    jaxpr: Jaxpr,
    sources: dict[int, set[int]],
    counted: dict[int, int],
    limits: dict[int, int],
) -> None:
    """Follow inputs through a jaxpr, and note how large the axes are that they index.

    Args:
        jaxpr: the jaxpr.
        sources: the inputs that a variable has indices of, by the variable's id.
        counted: the length of the `iota` that a variable has, by the variable's id.
        limits: the least size so far, by input.
    """
    for equation in jaxpr.eqns:
        operands = [
            set[int]() if is_literal(atom) else sources.get(id(atom), set[int]())
            for atom in equation.invars
        ]
        for used, size in _indexed(equation, operands, counted):
            for at in used:
                limits[at] = min(size, limits.get(at, size))
        name, params = equation.primitive.name, equation.params
        if name == "iota":
            counted[id(equation.outvars[0])] = params["shape"][params["dimension"]]
        elif name in _KEEPS:
            if together := set[int]().union(*operands):
                sources[id(equation.outvars[0])] = together
            if lengths := [counted[id(atom)] for atom in equation.invars if id(atom) in counted]:
                counted[id(equation.outvars[0])] = lengths[0]
        for part in inner_jaxprs(equation):
            # The operands of calls, loops and branches are the last ones of their jaxprs' inputs.
            inside = part.jaxpr
            for var, atom, known in zip(
                reversed(inside.invars), reversed(equation.invars), reversed(operands), strict=False
            ):
                shape = getattr(atom.aval, "shape", ())
                if known and getattr(var.aval, "shape", None) in (shape, shape[1:]):
                    sources[id(var)] = known
            _follow(inside, sources, counted, limits)
            if name in ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"):
                for outer, inner in zip(equation.outvars, inside.outvars, strict=False):
                    if not is_literal(inner) and id(inner) in sources:
                        sources[id(outer)] = sources[id(inner)]


def _indexed(
    equation: Equation, operands: Sequence[set[int]], counted: Mapping[int, int]
) -> Iterable[tuple[set[int], int]]:
    """Yield the inputs that an equation indexes with, each with the size of what they index."""
    match equation.primitive.name:
        case "gather":
            shape, params = equation.invars[0].aval.shape, equation.params
            axes = params["dimension_numbers"].start_index_map
            sizes = [shape[axis] - params["slice_sizes"][axis] + 1 for axis in axes]
            yield operands[1], min(sizes, default=1)
        case name if name.startswith("scatter"):
            shape = equation.invars[0].aval.shape
            axes = equation.params["dimension_numbers"].scatter_dims_to_operand_dims
            yield operands[1], min((shape[axis] for axis in axes), default=1)
        case "dynamic_slice":
            shape, sizes = equation.invars[0].aval.shape, equation.params["slice_sizes"]
            for axis, used in enumerate(operands[1 : 1 + len(shape)]):
                yield used, shape[axis] - sizes[axis] + 1
        case "dynamic_update_slice":
            shape, written = (atom.aval.shape for atom in equation.invars[:2])
            for axis, used in enumerate(operands[2 : 2 + len(shape)]):
                yield used, shape[axis] - written[axis] + 1
        case "eq":
            for used, other in zip(operands, reversed(equation.invars), strict=True):
                if id(other) in counted:
                    yield used, counted[id(other)]


def _is_integer(aval: Aval) -> bool:
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and bool(avals.is_subtype(dtype, np.integer))
