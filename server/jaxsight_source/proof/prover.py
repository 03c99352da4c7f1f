"""Proof that an expression is an equation: traced alone, it results in exactly that equation.

The expression is traced on the equation's own abstract inputs. Nothing is written that was neither
proved in this way nor built by a rule that is correct by construction. The prover evaluates only
text that rules built from public names; it runs no user functions.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives
from jax.interpreters import ad

from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import stage, surroundings
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.jaxprs.same.values import Block
from jaxsight_source.text.exprs import SHORT, modules_in
from jaxsight_source.text.layout import flat

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """Equations that one expression should represent.

    `inputs` fill its slots; `outputs` are its results in order.
    """

    equations: Sequence[Equation]
    inputs: Sequence[Atom]
    outputs: Sequence[Atom]


@dataclass(frozen=True, slots=True)
class Proved:
    """An expression with slots, and the tree of its results (a pytree of result positions)."""

    expr: ast.expr
    results: object
    bound: bool = False
    """Whether it calls `bind`."""


class Prover:
    """Proves expressions with the names that a written module imports.

    Args:
        sums: compare sums of cotangents as additions.
    """

    def __init__(self, sums: bool) -> None:
        self._sums = sums
        self.names: dict[str, object] = {
            "jax": jax, "jnp": jnp, "lax": lax, "np": np, "primitives": primitives, "ad": ad,
        }  # fmt: skip
        self.axes: list[tuple[object, int]] = []
        """The names and sizes of the enclosing mapped axes, which collectives need."""

    def proves(self, expr: ast.expr, claim: Claim) -> tuple[object] | None:
        """Return the tree of the expression's results, or None if it is not those equations.

        The tree is a pytree of result positions, in a tuple.
        """
        slots = ", ".join(f"a{index}" for index in range(len(claim.inputs)))
        text = f"lambda {slots}: {flat(expr)}"
        for module, short in SHORT.items():
            if short not in self.names and module in sys.modules:
                self.names[short] = sys.modules[module]
        for root in {module.partition(".")[0] for module in modules_in(expr)}:
            if root in sys.modules:
                self.names.setdefault(root, sys.modules[root])
        try:
            function = eval(text, self.names)
            with surroundings(claim.equations[-1].ctx, self.axes):
                staged = stage(function, [var.aval for var in claim.inputs])
        except Exception as error:  # noqa: BLE001 - a candidate that fails in any way is rejected
            _log.debug("%s: %s", text, error)
            return None
        results = staged.results
        outputs = list(staged.program.jaxpr.outvars)
        if len(claim.equations) == 1 and len(outputs) > 1:
            order = _order(outputs, staged.program.jaxpr.eqns)
            if order is not None:
                outputs = [outputs[position] for position in order]
                results = jax.tree.map(order.index, results)
        comparison = Comparison(sums=self._sums)
        tokens = [comparison.fresh() for _ in claim.inputs]
        program = staged.program
        consts = [(var, ("constant", id(var))) for var in program.jaxpr.constvars]
        difference = comparison.blocks(
            Block(list(zip(claim.inputs, tokens, strict=True)), claim.equations, claim.outputs),
            Block(
                [*consts, *zip(program.jaxpr.invars, tokens, strict=True)],
                program.jaxpr.eqns,
                outputs,
            ),
        )
        if difference is not None:
            _log.debug("%s: %s", text, difference)
            return None
        return (results,)


def _order(outputs: Sequence[Atom], equations: Sequence[Equation]) -> list[int] | None:
    """Return the positions of a function's results in the order of its only equation.

    `svd` returns them in another order.
    """
    if len(equations) != 1:
        return None
    positions = {id(var): position for position, var in enumerate(outputs)}
    order = [positions.get(id(var)) for var in equations[0].outvars]
    present = [position for position in order if position is not None]
    return present if len(present) == len(outputs) == len(order) else None
