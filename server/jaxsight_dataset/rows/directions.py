"""The two directions of a program: the function itself, and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program, opened


@dataclass(frozen=True, slots=True)
class Direction:
    """A traced direction of a program, with the flat function that it is the trace of.

    Attributes:
        traced: the trace, of a jitted function.
        call: the function of flat arrays, which returns flat arrays.
        arguments: the flat arrays that it is called with.
    """

    traced: Traced
    call: Callable[..., list[jax.Array]]
    arguments: tuple[jax.Array, ...]

    @property
    def program(self) -> Program:
        """The jaxpr."""
        return opened(self.traced.jaxpr)

    @property
    def has_kernels(self) -> bool:
        """Whether it has Pallas kernels, which are interpreted on the CPU."""
        return "pallas_call" in primitives(self.program)


def forward(function: Callable[..., object], arguments: tuple[object, ...]) -> Direction:
    """Trace a function.

    Raise whatever tracing raises.
    """
    traced = jax.jit(function).trace(*arguments)
    leaves, tree = jax.tree.flatten(arguments)

    def call(*arrays: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(function(*jax.tree.unflatten(tree, arrays)))

    return Direction(traced, call, tuple(leaves))


def backward(direction: Direction) -> Direction | None:
    """Trace the derivative: from arguments and cotangents of inexact results to gradients.

    The gradients are those of the inexact arguments; the cotangents are random, the same for the
    same types of results. Return None if the function cannot be differentiated, or does not depend
    on inexact arguments.
    """
    inexact = positions(direction.arguments)
    variables = direction.program.jaxpr.outvars
    results = positions(variables)
    if not inexact or not results:
        return None
    chance = np.random.default_rng(0)
    cotangents = [_cotangent(variables[position].aval, chance) for position in results]
    count = len(direction.arguments)

    def derivative(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        values, given = list(arrays[:count]), arrays[count:]

        def differentiable(*some: jax.Array) -> list[jax.Array]:
            whole = list(values)
            for position, value in zip(inexact, some, strict=True):
                whole[position] = value
            returned = direction.call(*whole)
            return [returned[position] for position in results]

        _, pullback = jax.vjp(differentiable, *(values[position] for position in inexact))
        return tuple(pullback(list(given)))

    arguments = (*direction.arguments, *cotangents)
    try:
        traced = jax.jit(derivative, keep_unused=True).trace(*arguments)
    except Exception:  # noqa: BLE001 - JAX's, about primitives without a derivative
        return None
    made = Direction(traced, lambda *arrays: list(derivative(*arrays)), arguments)
    return made if made.program.jaxpr.eqns else None


def _cotangent(result: Any, chance: np.random.Generator) -> jax.Array:
    values = chance.normal(size=result.shape)
    if jnp.issubdtype(result.dtype, jnp.complexfloating):
        values = values + 1j * chance.normal(size=result.shape)
    cotangent: jax.Array = jax.device_put(np.asarray(values).astype(result.dtype))
    return cotangent


def positions(values: Sequence[Any]) -> list[int]:
    """Return which arrays, or variables, are floating-point or complex."""
    types = [getattr(value, "aval", value).dtype for value in values]
    return [at for at, dtype in enumerate(types) if jnp.issubdtype(dtype, jnp.inexact)]


def primitives(program: Program) -> list[str]:
    """Return the names of the primitives of a program, at all levels, in the order of equations."""
    return [equation.primitive.name for equation in equations(program)]


def equations(program: Program) -> list[Equation]:
    """Return the equations of a program, each followed by those of its inner programs."""
    return [equation for _, equation in walk(program)]
