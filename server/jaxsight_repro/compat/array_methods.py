"""The methods of arrays by their code.

Applies to JAX 0.8 to 0.12. Tracers find their methods in a table of a private module.

Private API used: `jax._src.numpy.array_methods._array_methods`.
"""

from __future__ import annotations

import functools
import importlib
from types import CodeType


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
