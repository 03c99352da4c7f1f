"""JAX's contexts of the main thread: the mesh that `jax.set_mesh` chose, and others entered and never left.

They are objects of `jaxlib`'s `Config` class at the top of some modules of JAX; which ones differs between 0.8 and 0.12, so they are
looked for. `State`, the class of `jax.config`'s options, is left out: those belong to `config`.
"""

from __future__ import annotations

from typing import Any

from jax._src import config, core, mesh, sharding_impls

_CONTEXTS: dict[str, Any] = {
    name: value
    for module in (config, core, mesh, sharding_impls)
    for name, value in vars(module).items()
    if type(value) is config.config_ext.Config
}


def values() -> dict[str, object]:
    """Each context's value in this thread."""
    return {name: context.get_local() for name, context in _CONTEXTS.items()}


def enter(name: str, value: object) -> None:
    """Give a context a value that `values` gave before."""
    _CONTEXTS[name].set_local(value)
