"""One function per operation: its counterpart in JAX."""

from __future__ import annotations

import functools
import importlib
import pkgutil


@functools.cache
def register() -> None:
    """Import the modules of this package, which declare what they read."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
