"""JAX's contexts of the main thread: the mesh of `jax.set_mesh`, and entered option contexts.

They are objects of `jaxlib`'s `Config` class at the top level of modules of JAX; which modules
differs between 0.8 and 0.12, so they are searched for.
Options of `jax.config` (class `State`) have a thread-local value besides the global one, which
`config` handles: `jax.enable_x64(True)` enters the former.
"""

from __future__ import annotations

from typing import Any

from jax._src import config, core, mesh, sharding_impls

_OF_TRACE = frozenset({"trace_state", "trace_state_strong_ref", "axis_env_state"})
"""State of the running trace, which importing a module does not change."""

_CONTEXTS: dict[str, Any] = {
    name: value
    for module in (config, core, mesh, sharding_impls)
    for name, value in vars(module).items()
    if isinstance(value, config.config_ext.Config) and name not in _OF_TRACE
}


def values() -> dict[str, object]:
    """Return each context's value in this thread."""
    return {name: context.get_local() for name, context in _CONTEXTS.items()}


def enter(name: str, value: object) -> None:
    """Set a context to a value that `values` returned before."""
    context = _CONTEXTS[name]
    context.set_local(value)
    # As `StateContextManager.__exit__` does in JAX 0.8 to 0.12.
    if (hook := getattr(context, "_update_thread_local_hook", None)) is not None:
        hook(None if value is config.config_ext.unset else value)
