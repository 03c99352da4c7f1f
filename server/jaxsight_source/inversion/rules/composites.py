"""Inverses of JAX's own functions that are one call in a jaxpr, with a body that has no inverse.

A call is recognised by its name, and then by comparing its program with the one that JAX traces for
the function itself: a user's function of the same name is never mistaken for it.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import called, function_name
from jaxsight_source.inversion.network import Blocked, Network, Placed, Solution, inverses
from jaxsight_source.inversion.reasons import NO_RULE
from jaxsight_source.inversion.rules.elementwise import two_arguments
from jaxsight_source.jaxprs.same.comparison import same_jaxpr


@inverses("custom_jvp_call")
def _custom_jvp(placed: Placed, network: Network) -> Solution | Blocked:
    program = called(placed.equation)
    match function_name(program) if program is not None else "":
        case "logaddexp" if _is(placed, jnp.logaddexp):
            return two_arguments(placed, network, _log_difference, _log_difference)
        case "logit" if _is(placed, jax.scipy.special.logit):
            return Solution(placed.outputs, placed.inputs, lambda y: [lax.logistic(y)])
        case _:
            return Blocked(NO_RULE)


def _log_difference(y: jax.Array, operand: jax.Array) -> jax.Array:
    """Return `log(exp(y) - exp(operand))`; for softplus `operand` is 0."""
    return lax.add(y, lax.log(lax.neg(lax.expm1(lax.sub(operand, y)))))


def _is(placed: Placed, function: Callable[..., object]) -> bool:
    program = called(placed.equation)
    like = [avals.struct(n.aval.shape, n.aval.dtype, avals.weak(n.aval)) for n in placed.inputs]
    waiting = list(jax.make_jaxpr(function)(*like).eqns)
    while waiting:
        equation = waiting.pop()
        inner = called(equation)
        if inner is None:
            continue
        if equation.primitive.name == placed.name:
            return program is not None and same_jaxpr(program.jaxpr, inner.jaxpr) is None
        waiting += inner.jaxpr.eqns
    return False
