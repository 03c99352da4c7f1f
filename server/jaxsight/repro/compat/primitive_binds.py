"""Observes which primitives are bound, and makes equations of them.

Applies to JAX 0.8 to 0.12. JAX has no hook for `Primitive.bind` that the call tree could use.

Private API used: `Primitive._true_bind` (until 0.9: every subclass calls it), `Primitive.bind`
(from 0.9 on), `core.new_jaxpr_eqn`, `core.JaxprEqnContext`, `core.current_jaxpr_eqn_context`,
`core.Tracer`, `core.trace_ctx`, `Primitive.abstract_eval`,
`config._check_vma`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Bound = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""Calls the original `bind` with a primitive, operands and parameters, and returns its results."""


def observe(bound: Bound) -> None:
    """Have `bound` called for every primitive that is bound."""
    core: Any = importlib.import_module("jax._src.core")
    name = "_true_bind" if hasattr(core.Primitive, "_true_bind") else "bind"
    original = getattr(core.Primitive, name)

    def bind(self: Any, /, *args: Any, **params: Any) -> Any:
        return bound(original, self, args, params)

    setattr(core.Primitive, name, bind)


def tracer_type() -> type:
    """Return the type of all tracers."""
    core: Any = importlib.import_module("jax._src.core")
    tracer: type = core.Tracer
    return tracer


def current_trace() -> Callable[[], Any]:
    """Return a function that returns the trace that primitives are bound in."""
    core: Any = importlib.import_module("jax._src.core")
    context = core.trace_ctx
    return lambda: context.trace


def current_axes() -> tuple[tuple[Any, int], ...]:
    """Return the names and sizes of the mapped axes."""
    core: Any = importlib.import_module("jax._src.core")
    return tuple(core.trace_ctx.axis_env.axis_sizes.items())


def checks_variance() -> bool:
    """Return whether JAX tracks the axes of a mesh over which values vary."""
    config: Any = importlib.import_module("jax._src.config")
    return bool(config._check_vma.value)


def with_variance(checked: bool) -> contextlib.AbstractContextManager[Any]:
    """Have JAX track the axes of a mesh over which values vary, or not."""
    config: Any = importlib.import_module("jax._src.config")
    context: contextlib.AbstractContextManager[Any] = config._check_vma(checked)
    return context


def current_context() -> Callable[[], Any]:
    """Return a function that returns the settings under which a primitive is bound."""
    core: Any = importlib.import_module("jax._src.core")
    current: Callable[[], Any] | None = getattr(core, "current_jaxpr_eqn_context", None)
    if current is not None:
        return current
    config: Any = importlib.import_module("jax._src.config")
    metadata: Any = importlib.import_module("jax._src.xla_metadata_lib")
    return lambda: core.JaxprEqnContext(
        config.compute_on_context_manager.value,
        config.threefry_partitionable.value,
        metadata.current_xla_metadata(),
    )


def equation(
    primitive: Any,
    invars: Sequence[Any],
    outvars: Sequence[Any],
    params: Mapping[str, Any],
    effects: Any,
    context: Any,
) -> Any:
    """Return an equation of a jaxpr."""
    core: Any = importlib.import_module("jax._src.core")
    return core.new_jaxpr_eqn(
        list(invars), list(outvars), primitive, dict(params), effects, None, context
    )


def effects_of(primitive: Any, avals: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Return the effects of an equation: those of the programs in it, or of its abstract rule."""
    effects: set[Any] = set()
    programs = False
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(part, "eqns"):
                programs = True
                effects |= set(part.effects or ())
    if programs:
        return frozenset(effects)
    try:
        _, own = primitive.abstract_eval(*avals, **params)
        return frozenset(own)
    except Exception:  # noqa: BLE001 - rules may depend on what surrounds the equation
        return frozenset()
