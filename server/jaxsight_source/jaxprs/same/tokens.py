"""Tokens: hashable stand-ins for the values of a program, equal if the values are the same."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import jax
import numpy as np

from jaxsight_source.compat import dtypes
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal, Var
from jaxsight_source.compat.staging import Program, is_literal, is_ref, is_tracer

Token: TypeAlias = Hashable

Tokens: TypeAlias = dict[int, Token]
"""The tokens of variables, by the ids of the variables."""


@dataclass(frozen=True, slots=True)
class Block:
    """Equations with their inputs and outputs; `inputs` pairs variables with their tokens."""

    inputs: Sequence[tuple[Var, Token]]
    equations: Sequence[Equation]
    outputs: Sequence[Atom]


def block_of(program: Program, tokens: Sequence[Token]) -> Block:
    """Return a program as a block: `tokens` are those of its free constants, then its inputs."""
    jaxpr = program.jaxpr
    consts = [
        (var, value_token(value))
        for var, value in zip(jaxpr.constvars, program.consts, strict=False)
        if not is_tracer(value)
    ]
    inputs = list(zip([*free_constants(program), *jaxpr.invars], tokens, strict=True))
    return Block([*consts, *inputs], jaxpr.eqns, jaxpr.outvars)


def free_constants(program: Program) -> list[Var]:
    """Return the constants of a jaxpr that came without values.

    Primitives of other packages keep such constants and pass the values as operands. From JAX 0.12
    on, the tracers that stood for them in a finished trace are still there.
    """
    flags = itertools.chain(map(is_tracer, program.consts), itertools.repeat(True))
    return [var for var, free in zip(program.jaxpr.constvars, flags, strict=False) if free]


def value_token(value: object) -> Token:
    """Return a key that is equal for values of equal bits, shape and dtype.

    A scalar has the same key as a literal, a NumPy and a JAX array; weak types do not count.
    """
    if isinstance(value, np.ndarray):
        return _array_token(np.asarray(value))
    dtype = getattr(value, "dtype", None)
    if dtypes.is_subtype(dtype, jax.dtypes.prng_key):
        return (str(dtype), value_token(jax.random.key_data(cast(jax.Array, value))))
    if is_ref(value):
        return ("ref", id(value))
    if not hasattr(value, "dtype"):
        try:
            value = np.asarray(value, jax.dtypes.result_type(value))
        except TypeError:
            return ("object", id(value))
    return _array_token(np.asarray(value))


def _array_token(array: np.ndarray) -> Token:
    return (_dtype_name(array.dtype), array.shape, array.tobytes())


_dtype_name = functools.lru_cache(str)
"""Returns the name of a dtype, which NumPy composes each time."""


@functools.lru_cache
def _is_extended(dtype: object) -> bool:
    return dtypes.is_subtype(dtype, jax.dtypes.extended)


def literal_token(literal: Literal) -> Token:
    dtype = getattr(literal.aval, "dtype", None)
    if dtype is None or _is_extended(dtype):
        return value_token(literal.val)
    array = np.asarray(literal.val)
    return _array_token(array if array.dtype == dtype else array.astype(dtype))


def atom_token(atom: Atom, tokens: Tokens) -> Token:
    """Return the token of an atom.

    A value that is no equation's result, because it is unused, is equal to no other.
    """
    if is_literal(atom):
        return literal_token(atom)
    return tokens.get(id(atom), ("unused", id(atom)))


def effect_texts(equation: Equation, tokens: Tokens) -> list[str]:
    """Return the texts of an equation's effects, sorted."""
    return sorted(_effect_text(effect, equation, tokens) for effect in equation.effects)


def _effect_text(effect: object, equation: Equation, tokens: Tokens) -> str:
    """Return the text of an effect, with the token of the operand that it concerns, if any."""
    operand = getattr(effect, "input", getattr(effect, "input_index", None))
    if operand is None:
        return str(effect)
    var = equation.invars[operand] if isinstance(operand, int) else operand
    return f"{type(effect).__name__} on {tokens.get(id(var))}"
