"""Determine the folders that a file is imported from, and its package.

This uses only the standard library, as it is imported before JAX.
"""

from __future__ import annotations

import os
from pathlib import PurePath

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
