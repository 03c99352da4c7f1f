"""JAX's contexts of the main thread: the mesh of `jax.set_mesh`, and entered option contexts.

They are objects of `jaxlib`'s `Config` class at the top level of modules of JAX; which modules
differs between 0.8 and 0.12, so they are searched for.
Options of `jax.config` (class `State`) have a thread-local value besides the global one, which
`config` handles: `jax.enable_x64(True)` enters the former.

JAX refuses `jax.set_mesh` and `get_mesh` under `jax.jit` (jax/_src/sharding_impls.py). A function
without `jit` is traced here as if it had one, so that both work in it as they do when it is called.
Private API used: `core.set_current_trace`, `core.eval_trace`, `DynamicJaxprTrace`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax._src import config, core, mesh, sharding_impls

from jaxsight.tracer.compat import traces

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


_is_eager = False
"""Whether the outermost trace is that of a function that the program calls without `jit`."""


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Let the function that is traced next set the mesh, as it can without `jit`."""
    global _is_eager
    before, _is_eager = _is_eager, True
    try:
        yield
    finally:
        _is_eager = before


def _as_if_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of JAX that the outermost trace does not keep from working."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        if not _is_eager or not traces.is_outermost(traces.current()):
            return function(*args, **kwargs)
        with _at_top_level(core.eval_trace):
            return function(*args, **kwargs)

    return call


_at_top_level: Callable[[object], contextlib.AbstractContextManager[None]] = core.set_current_trace
_set_mesh: Any = jax.set_mesh
# `jax.set_mesh` is a class; its constructor is what raises inside of a trace.
_set_mesh.__init__ = _as_if_called(_set_mesh.__init__)
if (_get_mesh := getattr(jax.sharding, "get_mesh", None)) is not None:  # since JAX 0.9
    jax.sharding.get_mesh = _as_if_called(_get_mesh)
