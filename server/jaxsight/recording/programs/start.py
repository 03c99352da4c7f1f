"""Begin to collect what this process compiles, as soon as it has imported JAX.

This module uses only the standard library.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

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
        for finder in sys.meta_path:
            if (spec := finder.find_spec(name, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._folder)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Executes a module with the loader that it has without us, and begins to collect."""

    def __init__(self, own: importlib.abc.Loader, folder: str) -> None:
        self._own = own
        self._folder = folder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return the module that the own loader creates."""
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        try:
            from jaxsight.recording.programs.collector import Collector

            Collector(self._folder).begin()
        except Exception:  # noqa: BLE001, S110 - then the program runs without being observed
            pass
