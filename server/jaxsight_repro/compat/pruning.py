"""Removes what no output of a program needs, also inside loops. Applies to JAX 0.8 to 0.12.

Private API used: `pe.dce_jaxpr`, which knows the parameters of loops and calls in each version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from jax._src.interpreters import partial_eval as pe

from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.staging import stage


def needed(
    inputs: Sequence[Var], equations: Sequence[Equation], outputs: Sequence[Atom]
) -> tuple[list[Equation], list[bool]]:
    """Return the equations that outputs need, and which inputs they read."""
    blank = stage(lambda *values: list(values), [var.aval for var in inputs]).program.jaxpr
    effects = frozenset(effect for equation in equations for effect in equation.effects)
    jaxpr = blank.replace(
        invars=list(inputs), outvars=list(outputs), eqns=list(equations), effects=effects
    )
    pruned, used, *_ = pe.dce_jaxpr(cast(Any, jaxpr), [True] * len(outputs))
    return list(cast(Any, pruned).eqns), list(used)
