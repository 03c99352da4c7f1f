"""From where a file is imported, and under which package.

Standard library only: it is read before JAX is imported.
"""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path, PurePath

from jaxsight.tracer.origins import INSTALLED

SCRIPTS = "__jaxsight__"
"""The parent in the names of modules that are in no package."""


class SliceLoader(SourceFileLoader):
    """What a traced file has as its loader: it tells the file's text, and that the module is not
    what importing makes of it.
    """


def package_of(file: str, module: str) -> str:
    """Return `__package__` of a file that is imported as `module`: empty where it is in no
    package.
    """
    if PurePath(file).name == "__init__.py":
        return module
    package = module.rpartition(".")[0]
    return "" if package == SCRIPTS else package


def import_folders(file: str, module: str, root: str) -> list[str]:
    """Return what goes onto `sys.path`: the folder that the file is imported from, the root, and
    `src` in it.

    The project's modules are looked for there too, so the folder of installed packages is left out:
    it is on the path anyhow.
    """
    parents = PurePath(file).parents
    package = package_of(file, module)
    depth = package.count(".") + 1 if package else 0
    above = parents[min(depth, len(parents) - 1)]
    folders = [] if INSTALLED.intersection(above.parts) else [str(above)]
    if root:
        folders += [root, str(PurePath(root, "src"))]
    return [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]
