"""Find the variable of a traced value in a jaxpr under construction.

This applies to JAX 0.8 to 0.12.

Private API used: `DynamicJaxprTracer.val`, and the values of tracers of transformations (`primal`,
`val`).
"""

from __future__ import annotations

from typing import cast

from jax._src import core
from jax._src.interpreters.partial_eval import DynamicJaxprTracer

from jaxsight.interpreters.compat.jaxpr_types import Var


def variable(value: object) -> Var | None:
    """Return the variable of a value, or `None` if the value is known.

    Under `vmap` or `grad`, this is the variable of the underlying value.
    """
    while isinstance(value, core.Tracer) and not isinstance(value, DynamicJaxprTracer):
        value = getattr(value, "primal", getattr(value, "val", None))
    return cast(Var, value.val) if isinstance(value, DynamicJaxprTracer) else None
