"""Gradients of programs that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.tracer.comparison.runnable_program import RunnableProgram
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Aval


def gradient_of(program: RunnableProgram) -> Callable[..., list[jax.Array]]:
    """Return the gradient of the sum of all floating-point results, zeros for other inputs."""

    def gradient(constants: Sequence[object], *args: object) -> list[jax.Array]:
        chosen = [index for index, aval in enumerate(program.inputs) if is_float(aval)]

        def total(floats: Sequence[object]) -> object:
            filled = list(args)
            for index, value in zip(chosen, floats, strict=True):
                filled[index] = value
            parts = [
                jnp.sum(jnp.real(output).astype(jnp.float32))
                for output in program(constants, *filled)
                if is_float(output)
            ]
            # `jax.grad` takes a function with one scalar result.
            return sum(parts[1:], parts[0])

        slopes = jax.grad(total)([args[index] for index in chosen])
        by_input: list[jax.Array] = [jnp.zeros(())] * len(args)
        for index, slope in zip(chosen, slopes, strict=True):
            by_input[index] = slope
        return by_input

    return gradient


def is_differentiable(program: RunnableProgram) -> bool:
    """Return whether a program has floating-point inputs and results."""
    return any(map(is_float, program.inputs)) and any(map(is_float, program.outputs))


def is_traceable(gradient: Any, program: RunnableProgram) -> bool:
    """Return whether the gradient of a program exists."""
    try:
        structs = (avals.struct(aval.shape, aval.dtype) for aval in program.inputs)
        gradient.trace(program.constants, *structs)
    except Exception:  # noqa: BLE001 - derivative rules may be the user's
        return False
    return True


def is_float(aval: Aval | jax.Array) -> bool:
    """Return whether a value is of floating-point numbers."""
    return bool(jnp.issubdtype(aval.dtype, jnp.floating))


def slope_names(program: RunnableProgram) -> list[str]:
    """Return the names of the gradients of a program's inputs, for users."""
    return [f"the gradient of {name}" for name in program.names]
