"""Which modules of the server import which, read off their texts.

Imports below `if TYPE_CHECKING` count: who reads one module of a circle has to read them all.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "server"
FILES = sorted(ROOT.rglob("*.py"))


def name_of(file: Path, root: Path = ROOT) -> str:
    """The dotted name of a module or package."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports_of(name: str, text: str, modules: set[str], is_package: bool = False) -> set[str]:
    """Those of `modules` that the text of a module imports anywhere, without itself."""
    return imports_in(name, ast.parse(text), modules, is_package)


def imports_in(
    name: str, tree: ast.Module, modules: set[str], is_package: bool = False
) -> set[str]:
    """The same of a module's syntax tree."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                found.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=source, names=aliases, level=level):
                above = package[: len(package) - level + 1] if level else []
                base = ".".join([*above, *([source] if source else [])])
                for alias in aliases:
                    inner = f"{base}.{alias.name}"
                    found.add(inner if inner in modules else base)
    return (found & modules) - {name}


@cache
def of_modules() -> dict[str, set[str]]:
    """Return which modules of the server each of them imports."""
    modules = {name_of(file): file for file in FILES}
    return {
        name: imports_of(
            name, file.read_text(encoding="utf-8"), {*modules}, file.name == "__init__.py"
        )
        for name, file in modules.items()
    }


def of_packages() -> dict[str, set[str]]:
    """Return which packages of the server each of them imports; single modules are packages."""
    packages: dict[str, set[str]] = {}
    for name, imported in of_modules().items():
        importer = packages.setdefault(_package(name), set())
        importer.update(_package(module) for module in imported)
    return packages


def _package(module: str) -> str:
    top, _, rest = module.partition(".")
    return top if top != "jaxsight" else rest.partition(".")[0]


def reached(imports: Mapping[str, set[str]], start: str) -> set[str]:
    """What is reached from a name by any number of imports; the name itself only by a circle."""
    waiting, found = [*imports[start]], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports[name]
    return found
