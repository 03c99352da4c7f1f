"""Where modules are found: the folders that a file is imported from, and finders of modules.

This uses only the standard library, as it is imported before JAX.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import PurePath
from types import ModuleType
from typing import Any

from jaxsight.tracer.isolation.code_origins import INSTALLED

SCRIPTS = "__jaxsight__"
"""The parent in the names of modules without a package."""


def package_of(file: str, module: str) -> str:
    """Return `__package__` of a file imported as `module`, empty without a package."""
    if PurePath(file).name == "__init__.py":
        return module
    package = module.rpartition(".")[0]
    return "" if package == SCRIPTS else package


def import_folders(file: str, module: str, root: str) -> list[str]:
    """Return the folders for `sys.path`: the file's import folder, the root, and its `src`.

    The project's modules are searched for there too, so the folder of installed packages is
    excluded; it is on the path anyway.
    """
    parents = PurePath(file).parents
    package = package_of(file, module)
    depth = package.count(".") + 1 if package else 0
    above = parents[min(depth, len(parents) - 1)]
    folders = [] if INSTALLED.intersection(above.parts) else [str(above)]
    if root:
        folders += [root, str(PurePath(root, "src"))]
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]  # noqa: PTH112 (a tenth of the time)


def prefixes(name: str) -> list[str]:
    """Return `a`, `a.b`, `a.b.c` for `a.b.c`."""
    return list(itertools.accumulate(name.split("."), "{}.{}".format))


def init_file(folder: str) -> str:
    """Return the file of the package in a folder."""
    return str(PurePath(folder, "__init__.py"))


def lies_in(path: str, root: str) -> bool:
    """Return whether a file is under the root, but neither installed nor in an environment."""
    if not path.startswith(root.rstrip("/\\") + ("\\" if "\\" in root else "/")):
        return False
    if INSTALLED.intersection(PurePath(path).relative_to(root).parts):
        return False
    return not any(
        path.startswith(prefix) and prefix.startswith(root) and prefix != root
        for prefix in (sys.prefix, sys.base_prefix)
    )


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


def spec_without(
    finder: MetaPathFinder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec of a module as it is found without `finder`."""
    # A copy: `AfterImport` removes itself when it is asked.
    for other in list(sys.meta_path):
        find: Any = getattr(other, "find_spec", None) if other is not finder else None
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None
