"""JAX's contexts of the main thread: the mesh that `jax.set_mesh` chose, and options and others
entered and never left.

They are objects of `jaxlib`'s `Config` class at the top of some modules of JAX; which ones differs
between 0.8 and 0.12, so they are looked for. Options of `jax.config` (class `State`) have a value
of the thread besides the one for all, which is `config`'s: `jax.enable_x64(True)` enters the
former.
"""

from __future__ import annotations

from typing import Any

from jax._src import config, core, mesh, sharding_impls

_OF_TRACE = frozenset({"trace_state", "trace_state_strong_ref", "axis_env_state"})
"""The trace that is running: what a module sets while it is imported is none of it."""

_CONTEXTS: dict[str, Any] = {
    name: value
    for module in (config, core, mesh, sharding_impls)
    for name, value in vars(module).items()
    if isinstance(value, config.config_ext.Config) and name not in _OF_TRACE
}


def values() -> dict[str, object]:
    """Each context's value in this thread."""
    return {name: context.get_local() for name, context in _CONTEXTS.items()}


def enter(name: str, value: object) -> None:
    """Give a context a value that `values` gave before."""
    context = _CONTEXTS[name]
    context.set_local(value)
    # As `StateContextManager.__exit__` does, in all of JAX 0.8 … 0.12.
    if (hook := getattr(context, "_update_thread_local_hook", None)) is not None:
        hook(None if value is config.config_ext.unset else value)
