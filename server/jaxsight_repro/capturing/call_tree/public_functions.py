"""The public functions of JAX by the code that they run."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from types import CodeType

from jaxsight_repro.compat import api_hooks

_MODULES = (
    "jax", "jax.numpy", "jax.lax", "jax.nn", "jax.random", "jax.numpy.linalg", "jax.numpy.fft",
    "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.stats.norm",
    "jax.nn.initializers", "jax.image", "jax.ops", "jax.tree_util", "jax.tree",
)  # fmt: skip
"""The modules that are searched, preferred ones first."""


@functools.cache
def _paths() -> tuple[dict[CodeType, str], dict[int, str]]:
    """Return the public names by code, and by the object's identity."""
    codes: dict[CodeType, str] = {}
    objects: dict[int, str] = {}
    for name in _MODULES:
        try:
            module = sys.modules.get(name) or importlib.import_module(name)
        except ImportError:
            continue
        for attribute in dir(module):
            value = getattr(module, attribute, None)
            if attribute.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            path = f"{name}.{attribute}"
            objects.setdefault(id(value), path)
            for code in _codes(value):
                codes.setdefault(code, path)
    return codes, objects


def _codes(fun: object) -> Iterator[CodeType]:
    """Yield the code of a function and of the one that it wraps."""
    for _ in range(6):  # `__wrapped__` may be circular
        code = getattr(fun, "__code__", None)
        if isinstance(code, CodeType) and code.co_name != "reraise_with_filtered_traceback":
            yield code
        inner = getattr(fun, "__wrapped__", None)
        if inner is None:
            inner = getattr(fun, "fun", None)  # of `jax.custom_jvp`
        if inner is None:
            return
        fun = inner


def path_of(fun: object) -> str | None:
    """Return the public name of a function object."""
    return _paths()[1].get(id(fun))


def path_of_code(code: CodeType) -> str | None:
    """Return the public name of the function that has this code."""
    return _paths()[0].get(code)


def method_of_code(code: CodeType) -> str | None:
    """Return the name of the method of arrays that has this code."""
    return api_hooks.methods().get(code)
