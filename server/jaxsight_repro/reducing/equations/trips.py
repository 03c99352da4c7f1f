"""Makes loops run fewer times: their counts and bounds shrink, a fixed count replaces a condition.

One iteration in place of a loop is tried in `bodies`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import jax
import numpy as np
from jax import lax

from jaxsight_repro.compat.retyping import retyped
from jaxsight_source.compat import avals, control_flow
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal
from jaxsight_source.compat.pallas import kernel_call
from jaxsight_source.compat.staging import (
    Program,
    evaluate,
    is_literal,
    new_literal,
    open_jaxpr,
    opened,
    stage,
    with_inner,
)


def iterations(equations: Iterable[Equation]) -> int:
    """Count iterations of loops, at every level; of a `while`, the integers that bound it.

    Of kernels, positions in the grid count, and elements of blocks.
    """
    total = 0
    for equation in equations:
        if equation.primitive.name == "scan":
            total += equation.params["length"]
        elif equation.primitive.name == "pallas_call":
            call = kernel_call(equation)
            total += (call.programs or 0) + sum(math.prod(block.sizes) for block in call.blocks)
        elif equation.primitive.name == "while":
            tested = open_jaxpr(equation.params["cond_jaxpr"])
            atoms = [*equation.invars, *(atom for each in tested.eqns for atom in each.invars)]
            total += sum(abs(int(atom.val)) for atom in atoms if _is_bound(atom))
        total += sum(iterations(part.jaxpr.eqns) for part in inner_jaxprs(equation))
    return total


def counted(equation: Equation) -> Iterator[tuple[Program, Sequence[Atom]]]:
    """Yield loops with fewer iterations in place of a loop, as programs of some of its operands.

    Inputs with an axis for iterations have the new length.
    """
    if equation.primitive.name == "scan":
        loop, operands = control_flow.scan(equation.params), equation.invars
        lengths: Sequence[int] = _fewer(loop.length)
    elif equation.primitive.name == "while":
        tested, run = equation.params["cond_nconsts"], equation.params["body_nconsts"]
        operands = equation.invars[tested:]
        body, carry = opened(equation.params["body_jaxpr"]), len(operands) - run
        loop, lengths = control_flow.Scan(run, carry, body, 0, False, 1, False), _COUNTS
    else:
        return
    for length in lengths:
        try:
            with equation.ctx.manager:
                program = _loop(loop, length)
        except Exception:  # noqa: BLE001 - a body that can only be traced where it was
            return
        yield program, operands


_COUNTS = (2, 3, 4, 8, 16)
"""Iterations that are tried in place of a `while` of any number of them, a choice: errors that need
more are rare, and each costs a run."""


def _fewer(count: int) -> list[int]:
    """Return smaller numbers of iterations: small ones first, then one that is a bit smaller."""
    powers = [1 << power for power in range(1, count.bit_length())]
    tries = {1, 3, *powers, count - count // 4, count - 1}
    return sorted(new for new in tries if 1 <= new < count)


def _loop(loop: control_flow.Scan, length: int) -> Program:
    """Return a program that runs the body of a loop so many times."""
    first = loop.consts + loop.carry

    def run(*operands: jax.Array) -> list[jax.Array]:
        def step(
            carry: Sequence[jax.Array], x: Sequence[jax.Array]
        ) -> tuple[list[jax.Array], list[jax.Array]]:
            results = evaluate(loop.body, *operands[: loop.consts], *carry, *x)
            return results[: loop.carry], results[loop.carry :]

        start, xs = list(operands[loop.consts : first]), list(operands[first:])
        carry, ys = lax.scan(step, start, xs, length, reverse=loop.reverse, unroll=loop.unroll)
        return [*carry, *ys]

    inputs = loop.body.jaxpr.invars
    types = [var.aval for var in inputs[:first]]
    rows = (var.aval for var in inputs[first:])
    types += [retyped(row, (length, *row.shape), row.dtype) for row in rows]
    return stage(run, types).program


def bounded(equations: Sequence[Equation]) -> Iterator[list[Equation]]:
    """Yield equations in which one loop, at any level, has a smaller bound.

    That is the length of a `scan` over no arrays, or an integer in the condition of a `while` or
    among its operands.
    """
    for position, equation in enumerate(equations):
        for renewed in _with_smaller_bound(equation):
            yield [*equations[:position], renewed, *equations[position + 1 :]]


def _with_smaller_bound(equation: Equation) -> Iterator[Equation]:
    params = equation.params
    if equation.primitive.name == "scan":
        loop = control_flow.scan(params)
        inputs = len(equation.invars) - loop.consts - loop.carry
        if not inputs and len(equation.outvars) == loop.carry:
            for length in _fewer(loop.length):
                yield equation.replace(params={**params, "length": length})
    elif equation.primitive.name == "while":
        for invars in _smaller_integers(equation.invars):
            yield equation.replace(invars=invars)
        tested = open_jaxpr(params["cond_jaxpr"])
        for position, each in enumerate(tested.eqns):
            for invars in _smaller_integers(each.invars):
                changed = each.replace(invars=invars)
                eqns = [*tested.eqns[:position], changed, *tested.eqns[position + 1 :]]
                program = with_inner(params["cond_jaxpr"], tested.replace(eqns=eqns))
                yield equation.replace(params={**params, "cond_jaxpr": program})
    for part in inner_jaxprs(equation):
        for eqns in bounded(part.jaxpr.eqns):
            inner = with_inner(part.value, part.jaxpr.replace(eqns=eqns))
            yield equation.replace(params=part.exchanged(params, inner))


def _smaller_integers(atoms: Sequence[Atom]) -> Iterator[list[Atom]]:
    for position, atom in enumerate(atoms):
        if _is_bound(atom):
            for new in _fewer(int(atom.val)):
                number = new if avals.weak(atom.aval) else np.asarray(new, atom.aval.dtype)[()]
                yield [*atoms[:position], new_literal(number, atom.aval), *atoms[position + 1 :]]


def _is_bound(atom: Atom) -> TypeGuard[Literal]:
    return is_literal(atom) and atom.aval.dtype.kind in "iu"
