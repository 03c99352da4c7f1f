"""A module's top-level statements, for rules that look at all of them together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Statement:
    """One top-level statement, or several that share a line.

    What is read off it is remembered with its text, so that an edit costs the statement that it
    touches.
    """

    text: str
    tree: Callable[[], ast.Module]
    memory: dict[Hashable, tuple[Hashable, object]] = field(default_factory=dict)

    def read(self, reader: Callable[..., T], *using: Hashable) -> T:
        """Return what a function makes of the syntax tree and of `using`, which it depends on."""
        known = self.memory.get(reader)
        if known is None or known[0] != using:
            known = self.memory[reader] = using, reader(self.tree(), *using)
        return known[1]  # type: ignore[return-value]


Imports = tuple[tuple[str, str], ...]
"""Names of a module with what they were imported as: `("jnp", "jax.numpy")`."""


_RENAMED = re.compile(r"(\w+) = (\w+(?:\.\w+)+)")
"""`jit = jax.jit`."""


def imports_of(statements: Sequence[Statement]) -> Imports:
    """Return what the module's imports bind, those inside of functions too.

    `jit = jax.jit` is read as an import.
    """
    found: dict[str, str] = {}
    for statement in statements:
        if "import" in statement.text:
            for name, full in statement.read(_imports):
                found.setdefault(name, full)
    for statement in statements:
        renamed = _RENAMED.fullmatch(statement.text.strip())
        if renamed is not None and renamed[2].partition(".")[0] in found:
            found.setdefault(renamed[1], full_name(renamed[2], found))
    return tuple(sorted(found.items()))


def _imports(tree: ast.Module) -> Imports:
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                found.append((each.asname or top, each.name if each.asname else top))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [
                (each.asname or each.name, f"{node.module}.{each.name}") for each in node.names
            ]
    return tuple(found)


def dotted(node: ast.AST) -> str:
    """Return `jax.lax.scan` for such an expression, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def full_name(name: str, imports: Mapping[str, str]) -> str:
    """Return a dotted name with its first part as it was imported: `jax.numpy.sum` for `jnp.sum`.

    A name that was not imported stays as it is.
    """
    first, dot, rest = name.partition(".")
    return f"{imports.get(first, first)}{dot}{rest}"


_QUOTED = re.compile(r"'([^'\"\\]*)'")


def written(node: ast.AST) -> str:
    """Return the source of a node with double quotes around strings, as most people write it."""
    try:
        return _QUOTED.sub(r'"\1"', ast.unparse(node))
    except RecursionError:
        return "…"
