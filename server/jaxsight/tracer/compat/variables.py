"""The variable of a jaxpr under construction that a traced value is. Holds for JAX 0.8 to 0.12.

Private API used: `DynamicJaxprTracer.val`, and what tracers of transformations hold (`primal`,
`val`).
"""

from __future__ import annotations

from typing import Any

from jax._src import core
from jax._src.interpreters.partial_eval import DynamicJaxprTracer


def variable(value: Any) -> Any:
    """The variable, of a value under `vmap` or `grad` that of the value without; `None` when it is
    a known one.
    """
    while isinstance(value, core.Tracer) and not isinstance(value, DynamicJaxprTracer):
        value = getattr(value, "primal", getattr(value, "val", None))
    return value.val if isinstance(value, DynamicJaxprTracer) else None
