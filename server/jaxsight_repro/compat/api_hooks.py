"""Wraps the functions of JAX that take functions, at their public names.

Applies to JAX 0.8 to 0.12. JAX's own hooks for this (jax-ml/jax#32910) are in no release as public
API, and do not see the functions of `jax.shard_map` and `jax.pmap`.

Private API used: `pjit.api_boundary` (by which `jax.jit` decorates the function that its C++ object
calls), `pjit.jit_lower` and `jit_trace`, `api.VJP`, `traceback_util.register_exclusion`,
`source_info_util.register_exclusion`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from jaxsight.tracer.importing.finding import AfterImport

Boundary = Callable[[Callable[..., object], str], Callable[..., object]]
"""Returns a function of JAX, by its public name, wrapped or as it is."""

_ELSEWHERE = {
    "jax.checkpoint": ("jax.remat", "jax.ad_checkpoint.checkpoint"),
    "jax.shard_map": ("jax.experimental.shard_map.shard_map",),
}
"""Other public names of the same function."""

WRAPPED = "_jaxsight_boundary"
"""The attribute of functions that are wrapped."""


def install(boundary: Boundary, names: Iterable[str], ready: Callable[[], None]) -> None:
    """Have `boundary` wrap the functions of these public names.

    `ready` is called once JAX is imported: at once, if it is imported already.
    """
    wanted = list(names)

    def finish() -> None:
        for name in wanted:
            for path in (name, *_ELSEWHERE.get(name, ())):
                _wrap_public(path, name, boundary)
        ready()

    if "jax" in sys.modules:
        finish()
    else:
        AfterImport("jax", finish)


def _wrap_public(path: str, name: str, boundary: Boundary) -> None:
    module_name, _, attribute = path.rpartition(".")
    module = sys.modules.get(module_name)
    fun = getattr(module, attribute, None)
    if module is None or fun is None or hasattr(fun, WRAPPED):
        return
    wrapped = boundary(fun, name)
    setattr(module, attribute, wrapped)
    source = sys.modules.get(getattr(fun, "__module__", ""))
    if source is not None and getattr(source, attribute, None) is fun:
        setattr(source, attribute, wrapped)  # for other modules that import it later


Wrapper = Callable[[Callable[..., object]], Callable[..., object]]
"""Returns the method that takes the place of another."""


def wrap_calls(cls_name: str, wrapper: Wrapper) -> None:
    """Wrap the `__call__` of a public class, `jax.custom_jvp`."""
    module_name, _, attribute = cls_name.rpartition(".")
    cls = getattr(sys.modules[module_name], attribute)
    cls.__call__ = wrapper(cls.__call__)


def wrap_pullbacks(wrapper: Wrapper) -> type:
    """Wrap the `__call__` of the functions that `jax.vjp` returns; return their type.

    `jax.linearize` returns a `jax.tree_util.Partial`, as `jax.vjp` does in JAX 0.8.
    """
    api = importlib.import_module("jax._src.api")
    for cls in (api.Partial, api.VJP):
        cls.__call__ = wrapper(cls.__call__)
    pullback: type = api.VJP
    return pullback


CacheMiss = Callable[..., tuple[object, ...]]
"""What the C++ object of a jitted function calls; the results are the first item."""


def wrap_jitted(
    wrapper: Callable[[CacheMiss, Callable[..., object]], CacheMiss],
    method: Callable[[Callable[..., object], str], Callable[..., object]],
) -> None:
    """Wrap the calls of functions that `jax.jit` returns.

    `wrapper` takes the function that the C++ object calls when it has no compiled program, and the
    function that is jitted; it is called while `jax.jit` runs. `method` wraps `lower`, `trace` and
    `eval_shape`, which take the jitted function first.
    """
    pjit: Any = importlib.import_module("jax._src.pjit")
    original = pjit.api_boundary

    @functools.wraps(original)
    def api_boundary(fun: Callable[..., object], **options: object) -> Callable[..., object]:
        bounded: CacheMiss = original(fun, **options)
        code = getattr(fun, "__code__", None)
        if code is None or code.co_name != "cache_miss" or "fun" not in code.co_freevars:
            return bounded
        cell = getattr(fun, "__closure__")[code.co_freevars.index("fun")]  # noqa: B009
        return wrapper(bounded, cell.cell_contents)

    pjit.api_boundary = api_boundary
    for name in ("lower", "trace", "eval_shape"):
        private = getattr(pjit, f"jit_{name}", None)
        if private is not None:
            setattr(pjit, f"jit_{name}", method(private, name))


def exclude(file: str) -> None:
    """Keep a file of ours out of the tracebacks and source locations that JAX reports."""
    for module in ("traceback_util", "source_info_util"):
        importlib.import_module(f"jax._src.{module}").register_exclusion(file)


@functools.cache
def methods() -> dict[CodeType, str]:
    """Return the names of the methods of arrays by code."""
    module = importlib.import_module("jax._src.numpy.array_methods")
    table: dict[str, object] = getattr(module, "_array_methods", {})
    by_code: dict[CodeType, str] = {}
    for name, method in table.items():
        while method is not None:
            code = getattr(method, "__code__", None)
            if isinstance(code, CodeType):
                by_code.setdefault(code, name)
            method = getattr(method, "__wrapped__", None)
    return by_code
