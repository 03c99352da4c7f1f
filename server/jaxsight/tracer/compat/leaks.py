"""Find leaked tracers in a jaxpr: JAX itself raises an error only when the function runs.

This applies to JAX 0.8 to 0.12.

`jit` adds an input, before the others, for each closed-over value that is a tracer; at the top
level that can only be one that escaped from a finished trace.
Private API used: `Traced._consts` (0.10 and newer), `Traced._args_flat` and `_num_consts` (0.8),
`core.escaped_tracer_error`, `core.trace_ctx`, `Trace.parent_trace` and `Tracer._trace`.
"""

from __future__ import annotations

from jax._src import core
from jax.stages import Traced

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import open_jaxpr


def leaked(traced: Traced) -> tuple[Exception, Equation | None] | None:
    """Return JAX's error about the first leaked tracer, and the equation that uses it, if any."""
    number = traced._num_consts
    # Since JAX 0.10. Before, they are the first of the flat arguments.
    captured = getattr(traced, "_consts", None)
    if captured is None:
        captured = getattr(traced, "_args_flat")[:number]  # noqa: B009 - unknown to later versions
    constants = list(captured)
    opened = open_jaxpr(traced.jaxpr)
    for variable, value in zip(opened.invars, constants, strict=False):
        if isinstance(value, core.Tracer):
            using = (equation for equation in opened.eqns if variable in equation.invars)
            error: Exception = core.escaped_tracer_error(value)  # type: ignore[no-untyped-call]
            return error, next(using, None)
    return None


def is_leaked(value: object) -> bool:
    """Return whether a value is a tracer of a trace that is finished."""
    if not isinstance(value, core.Tracer):
        return False
    trace: object = core.trace_ctx.trace
    while trace is not None and trace is not value._trace:
        trace = getattr(trace, "parent_trace", None)
    return trace is None
