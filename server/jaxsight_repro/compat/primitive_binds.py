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
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jaxsight_source.compat.jaxpr_types import Atom, Aval, Context, Equation, Primitive, Var

Bind = Callable[..., object]
"""Takes a primitive, its operands and its parameters, and returns its results."""


class TraceContext:
    """Which trace this thread binds primitives in."""

    trace: object = None


def _core() -> ModuleType:
    return importlib.import_module("jax._src.core")


def _config() -> ModuleType:
    return importlib.import_module("jax._src.config")


def observe(observed: Callable[[Bind], Bind]) -> None:
    """Bind every primitive by what `observed` returns, given the original."""
    core = _core()
    name = "_true_bind" if hasattr(core.Primitive, "_true_bind") else "bind"
    setattr(core.Primitive, name, observed(getattr(core.Primitive, name)))


def trace_context() -> TraceContext:
    """Return what tells the trace that primitives are bound in."""
    context: TraceContext = _core().trace_ctx
    return context


def tracer_type() -> type:
    """Return the type of all tracers."""
    tracer: type = _core().Tracer
    return tracer


def current_axes() -> tuple[tuple[Hashable, int], ...]:
    """Return the names and sizes of the mapped axes."""
    return tuple(_core().trace_ctx.axis_env.axis_sizes.items())


def checks_variance() -> bool:
    """Return whether JAX tracks the axes of a mesh over which values vary."""
    return bool(_config()._check_vma.value)


def with_variance(checked: bool) -> contextlib.AbstractContextManager[object]:
    """Have JAX track the axes of a mesh over which values vary, or not."""
    context: contextlib.AbstractContextManager[object] = _config()._check_vma(checked)
    return context


def current_context() -> Callable[[], Context]:
    """Return a function that returns the settings under which a primitive is bound."""
    core, config = _core(), _config()
    current: Callable[[], Context] | None = getattr(core, "current_jaxpr_eqn_context", None)
    if current is not None:
        return current
    metadata = importlib.import_module("jax._src.xla_metadata_lib")
    return lambda: core.JaxprEqnContext(
        config.compute_on_context_manager.value,
        config.threefry_partitionable.value,
        metadata.current_xla_metadata(),
    )


def equation(
    primitive: Primitive,
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    params: Mapping[str, object],
    effects: AbstractSet[object],
    context: Context | None,
) -> Equation:
    """Return an equation of a jaxpr."""
    made: Equation = _core().new_jaxpr_eqn(
        list(invars), list(outvars), primitive, dict(params), effects, None, context
    )
    return made


def effects_of(
    primitive: Primitive, avals: Sequence[Aval], params: Mapping[str, object]
) -> frozenset[object]:
    """Return the effects of an equation: those of the programs in it, or of its abstract rule."""
    parts = [
        part
        for value in params.values()
        for part in (value if isinstance(value, (tuple, list)) else (value,))
    ]
    if programs := [part for part in parts if hasattr(part, "eqns")]:
        return frozenset(effect for program in programs for effect in program.effects or ())
    try:
        _, own = getattr(primitive, "abstract_eval")(*avals, **params)  # noqa: B009 - private
        return frozenset(own)
    except Exception:  # noqa: BLE001 - rules may depend on what surrounds the equation
        return frozenset()
