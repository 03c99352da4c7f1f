"""Do something after a module was imported for the first time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class AfterImport:
    """A finder of modules that calls a function after the import of one."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        """Wait for a module."""
        self._name = name
        self._then = then
        sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own spec, with a loader that calls the function afterwards."""
        if name != self._name:
            return None
        # First, as `find_spec` asks all finders again, this one included.
        self.cancel()
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._then()

            loader.exec_module = exec_module
        return spec
