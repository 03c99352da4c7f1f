"""A traced program that a comparison runs, if that is safe: not those with effects or callbacks.

Captured arrays are arguments here, so that nothing is folded at compile time. Its gradients are
compared, too; its inputs are random: ordinary ones, and those of special cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from jaxsight.tracer.comparison.two_ways import Incomparable
from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Aval, Jaxpr
from jaxsight_source.compat.staging import Program, evaluate, opened
from jaxsight_source.jaxprs.arguments import Draw, drawn_array, normal_numbers

LARGEST = 512 << 20
"""Maximum bytes of the results of an equation, or of all inputs and results, of a program to run.

A comparison has several copies of them in memory, beside the user's own programs.
"""

_KERNELS = frozenset({"pallas_call", "core_map", "mpmd_map", "tpu_custom_call"})
"""Primitives whose kernels run on the target only, unless they are interpreted."""
_CALLBACKS = ("callback", "infeed", "outfeed", "print", "io_")


# Hashed by identity: `jax.jit` needs a hash, which arrays do not have.
@dataclass(frozen=True, eq=False)
class RunnableProgram:
    """A program to run: its jaxpr, its captured arrays, the names and types of its inputs."""

    jaxpr: Jaxpr
    constants: tuple[object, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(traced: Traced) -> RunnableProgram:
        program = opened(traced.jaxpr)
        names = tuple(name or str(at) for at, name in enumerate(argument_names(program)))
        return RunnableProgram(program.jaxpr, tuple(program.consts), names)

    @property
    def inputs(self) -> list[Aval]:
        return [var.aval for var in self.jaxpr.invars]

    @property
    def named_inputs(self) -> list[tuple[str, Aval]]:
        return list(zip(self.names, self.inputs, strict=True))

    @property
    def outputs(self) -> list[Aval]:
        return [var.aval for var in self.jaxpr.outvars]

    def __call__(self, constants: Sequence[object], *args: object) -> list[jax.Array]:
        return evaluate(Program(self.jaxpr, tuple(constants)), *args)


def check(program: RunnableProgram) -> None:
    """Check that a program may be run.

    Raises:
        Incomparable: it has effects, calls back into Python, has kernels of the target, or it is
            too large.
    """
    effects = getattr(program.jaxpr, "effects", None)
    if effects:
        raise Incomparable("it has effects, so it is not run")
    total = sum(map(avals.size, [*program.inputs, *program.outputs]))
    if total > LARGEST:
        raise Incomparable("its inputs and results are too large to run it for a comparison")
    for _, equation in walk(program.jaxpr):
        name = equation.primitive.name
        if any(word in name for word in _CALLBACKS):
            raise Incomparable(f"it has a {name}, so it is not run")
        if name in _KERNELS and not equation.params.get("interpret"):
            raise Incomparable("it has a kernel that does not run on the CPU, so it is not run")
        if sum(avals.size(var.aval) for var in equation.outvars) > LARGEST:
            raise Incomparable("it creates arrays that are too large for a comparison")


def check_same_types(before: RunnableProgram, after: RunnableProgram) -> None:
    """Check that two programs return arrays of the same types.

    Raises:
        Incomparable: they do not.
    """

    def kinds(program: RunnableProgram) -> list[tuple[object, object]]:
        return [(aval.shape, aval.dtype) for aval in program.outputs]

    if kinds(before) != kinds(after):
        was, now = (
            ", ".join(map(avals.text, program.outputs)) or "nothing" for program in (before, after)
        )
        raise Incomparable(f"it returns {now} instead of {was}")


def terms(program: RunnableProgram) -> int:
    """Return the size of the largest value, an upper bound of the terms of a sum."""
    steps = (var.aval for _, equation in walk(program.jaxpr) for var in equation.outvars)
    return max(
        (math.prod(aval.shape) for aval in [*program.inputs, *steps] if hasattr(aval, "shape")),
        default=1,
    )


def equations_of(
    primitives: frozenset[str], program: RunnableProgram
) -> list[tuple[str, list[tuple[int, ...]]]]:
    """Return the equations of some primitives in a program, with the shapes of their operands."""
    return [
        (equation.primitive.name, [var.aval.shape for var in equation.invars])
        for _, equation in walk(program.jaxpr)
        if equation.primitive.name in primitives
    ]


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
