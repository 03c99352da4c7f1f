"""A traced program that a comparison runs, if that is safe: not those with effects or callbacks.

Captured arrays are arguments here, so that nothing is folded at compile time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
from jax.stages import Traced

from jaxsight.tracer.comparison.two_ways import Incomparable
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Aval, Jaxpr
from jaxsight_source.compat.staging import Program, evaluate, open_jaxpr

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
        opened = open_jaxpr(traced.jaxpr)
        info = opened.debug_info
        names = tuple(str(name or "") for name in getattr(info, "arg_names", None) or ())
        if len(names) != len(opened.invars):
            names = tuple(map(str, range(len(opened.invars))))
        return RunnableProgram(opened, tuple(getattr(traced.jaxpr, "consts", ())), names)

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
