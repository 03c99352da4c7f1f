"""Random inputs of programs that are compared: ordinary ones, and those of special cases."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.comparison.runnable_program import RunnableProgram
from jaxsight.tracer.comparison.two_ways import Incomparable
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Aval
from jaxsight_source.jaxprs.arguments import Draw, drawn_array, normal_numbers


def drawn(
    program: RunnableProgram, draw: Draw, generator: np.random.Generator
) -> dict[str, jax.Array]:
    """Return random inputs of a program, by name."""
    return {name: random_array(aval, draw, generator) for name, aval in program.named_inputs}


def matched(
    before: RunnableProgram, after: RunnableProgram, inputs: dict[str, jax.Array]
) -> list[jax.Array]:
    """Return the same inputs for the changed program.

    For inputs that only it has, these are captured arrays of the original with the same type.
    """
    unused = {id(constant): constant for constant in before.constants}
    same_inputs = []
    for name, aval in after.named_inputs:
        value = inputs.get(name)
        if value is None:
            arrays = unused.values()
            of_shape = (array for array in arrays if getattr(array, "shape", None) == aval.shape)
            fitting = (array for array in of_shape if jnp.asarray(array).dtype == aval.dtype)
            constant = next(fitting, None)
            if constant is None:
                raise Incomparable(f"the new argument {name} has no known value")
            unused.pop(id(constant))
            value = jnp.asarray(constant, aval.dtype)
        if (value.shape, value.dtype) != (aval.shape, aval.dtype):
            raise Incomparable(f"{name} has a different type now")
        same_inputs.append(value)
    return same_inputs


def well_conditioned(value: jax.Array) -> jax.Array:
    """Return a square matrix whose diagonal outweighs the rest.

    For such matrices two ways to solve a system agree within rounding. Both are rational functions
    of the matrix: where they agree here, they do everywhere.
    """
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        return value
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return value
    row_sums = jnp.max(jnp.sum(jnp.abs(value), axis=-1)).astype(value.dtype)
    return value + 2 * row_sums * jnp.eye(value.shape[-1], dtype=value.dtype)


def random_array(aval: Aval, draw: Draw, generator: np.random.Generator) -> jax.Array:
    """Return random numbers, integers that may be indices, or keys of an abstract value's type."""
    is_unsigned = avals.is_subtype(getattr(aval, "dtype", None), np.unsignedinteger)
    low = 0 if is_unsigned or draw is normal_numbers else -3
    return drawn_array(aval, generator, numbers=draw, integers=(low, 8))


def _positive(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.uniform(0.1, 3.0, size=shape)


def _special(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw numbers at which functions often have special cases."""
    return generator.choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 100.0, 1e-6], size=shape)


def unusual(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw numbers of which some are not finite."""
    return generator.choice([0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.3], size=shape)


DRAWS: tuple[Draw, ...] = (normal_numbers, _positive, _special, unusual)
FINITE = (normal_numbers, _positive, _special)
ORDINARY = (normal_numbers, _positive)
"""Draws without special cases: differences are not caused by NaN or by one-sided limits."""
