"""No modules of the package import each other, directly or through others.

Imports below `if TYPE_CHECKING` count: who reads one module of a circle has to read them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tools.imports import imports_in, reached
from tools.lint.checkout import Checkout, Offender


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield each circle, at its first module."""
    modules = {_name(module.path): module for module in checkout.modules}
    imports = {
        name: imports_in(name, module.tree, {*modules}, module.path.endswith("/__init__.py"))
        for name, module in modules.items()
    }
    for circle in circles(imports):
        yield Offender(
            modules[circle[0]].path, 1, f"modules import each other: {', '.join(circle)}"
        )


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other."""
    from_each = {start: reached(imports, start) for start in imports}
    groups = {
        frozenset(name for name in from_each[start] if start in from_each[name])
        for start in imports
        if start in from_each[start]
    }
    return sorted(map(sorted, groups))


def _name(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts[1:]
    return ".".join(parts).removesuffix(".__init__")
