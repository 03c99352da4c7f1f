"""Compile Pallas kernels for a target that this process only interprets them for.

Applies to JAX 0.8 to 0.12.

Private API used: `Traced._params` (and `_lojax`, where there is one), `JaxprEqn.replace`,
`Jaxpr.replace`, and the parameter `interpret` of the primitive `pallas_call`.
"""

from __future__ import annotations

import copy

from jax.stages import Traced

from jaxsight_source.compat.inner import replaced
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import open_jaxpr, with_inner


def compiled(traced: Traced) -> Traced:
    """Return a traced function whose Pallas kernels are compiled, not interpreted.

    That is what a program traces to that interprets kernels where `jax.default_backend()` is `cpu`.
    """
    changed = copy.copy(traced)
    changed._params = {**traced._params, "jaxpr": _compiled(traced.jaxpr)}
    if hasattr(changed, "_lojax"):
        changed._lojax = None
    return changed


def _compiled(jaxpr: object) -> object:
    opened = open_jaxpr(jaxpr)
    return with_inner(jaxpr, opened.replace(eqns=[_equation(each) for each in opened.eqns]))


def _equation(equation: Equation) -> Equation:
    if equation.primitive.name == "pallas_call":
        return equation.replace(params={**equation.params, "interpret": False})
    return equation.replace(params=replaced(equation.params, lambda part: _compiled(part.value)))
