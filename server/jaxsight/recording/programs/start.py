"""Begin to collect what this process compiles, as soon as it has imported JAX.

This module uses only the standard library.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_JAX = "jax"


def start(folder: str) -> None:
    """Wait for `import jax`; what is compiled afterwards is logged into a folder."""
    sys.meta_path.insert(0, _Finder(folder))


class _Finder:
    """Finds JAX once, as Python does, with a loader that reports that it was imported."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of JAX; `None` for all other modules."""
        if name != _JAX:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            # Only this one object executes JAX otherwise: its class stays as it is.
            loader: Any = spec.loader
            loader.exec_module = functools.partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Execute the module, and begin to collect."""
        execute(module)
        try:
            from jaxsight.recording.programs.collector import Collector

            Collector(self._folder).begin()
        except Exception:  # noqa: BLE001, S110 - then the program runs without being observed
            pass
