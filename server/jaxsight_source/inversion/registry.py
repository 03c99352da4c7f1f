"""`inverse_registry`: inverses of primitives as plain functions, for programs of the user's.

What it holds takes precedence over the rules of `jaxsight.inverse`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.inversion.network import Blocked, Network, Placed, Rule, Solution, inverses

Inverse: TypeAlias = Callable[..., jax.Array]

inverse_registry: dict[Primitive, Inverse | Sequence[Inverse | None]] = {}
"""Inverses by primitive.

>>> inverse_registry[jax.lax.exp_p] = jax.numpy.log

A primitive with one operand has a function from its results to the operand. One with several has a
sequence with a function for each, which computes it from the results and the other operands in
order, or `None` if they do not determine it:

>>> inverse_registry[jax.lax.sub_p] = (lambda y, b: y + b, lambda y, a: a - y)
>>> inverse_registry.clear()
"""


def rule_of(equation: Equation) -> Rule | None:
    """Return the rule for an equation: the registered one, or that of `jaxsight.inverse`."""
    primitive = equation.primitive
    registered = inverse_registry.get(cast(Primitive, primitive))
    if registered is None:
        return inverses.of(primitive.name)
    functions = (registered,) if callable(registered) else tuple(registered)
    operands = len(equation.invars)
    if len(functions) != operands or not all(f is None or callable(f) for f in functions):
        raise TypeError(
            f"inverse_registry needs {operands} function{'s' if operands > 1 else ''} for "
            f"{primitive.name}, one for each operand, got {registered!r}"
        )
    return lambda placed, network: _solution(functions, placed, network)


def _solution(
    functions: Sequence[Inverse | None], placed: Placed, network: Network
) -> Solution | Blocked:
    unknown = [index for index, node in enumerate(placed.inputs) if not network.knows(node)]
    if len(unknown) > 1:
        return Blocked(f"has {len(unknown)} unknown operands")
    if not network.knows(*placed.outputs):
        return Blocked("has unknown results")
    (index,) = unknown
    function = functions[index]
    if function is None:
        return Blocked(f"has no registered inverse for operand {index}")
    others = tuple(node for at, node in enumerate(placed.inputs) if at != index)
    argument = placed.inputs[index]

    def compute(*values: object) -> list[jax.Array]:
        # A constant of the program may be a number, or an array without operators (JAX 0.8).
        return [function(*(v if isinstance(v, jax.Array) else jnp.asarray(v) for v in values))]

    return Solution((*placed.outputs, *others), (argument,), compute)
