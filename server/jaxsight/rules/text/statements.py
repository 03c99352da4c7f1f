"""A module's top-level statements, for rules that look at all of them together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
        remembered = self.memory.get(reader)
        if remembered is None or remembered[0] != using:
            remembered = self.memory[reader] = using, reader(self.tree(), *using)
        return remembered[1]  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class Identical:
    """What statements were read as, equal as long as none of them was read anew.

    For what is remembered of a module as a whole, with its first statement.
    """

    values: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identical) and self._ids() == other._ids()

    def __hash__(self) -> int:
        return hash(self._ids())

    def _ids(self) -> tuple[int, ...]:
        return tuple(map(id, self.values))


Imports = tuple[tuple[str, str], ...]
"""Names of a module with what they were imported as: `("jnp", "jax.numpy")`."""
_RENAMED = re.compile(r"(\w+) = (\w+(?:\.\w+)+)")
"""`jit = jax.jit`."""


def imports_of(statements: Sequence[Statement]) -> Imports:
    """Return what the module's imports bind, those inside of functions too.

    `jit = jax.jit` is read as an import.
    """
    imports: dict[str, str] = {}
    for statement in statements:
        if "import" in statement.text:
            for name, full in statement.read(_imports):
                imports.setdefault(name, full)
    for statement in statements:
        renamed = _RENAMED.fullmatch(statement.text.strip())
        if renamed is not None and renamed[2].partition(".")[0] in imports:
            imports.setdefault(renamed[1], full_name(renamed[2], imports))
    return tuple(sorted(imports.items()))


def uses_jax(imports: Imports) -> bool:
    """Whether a module imports JAX, or a library of modules that JAX traces."""
    return any(full.partition(".")[0] in _LIBRARIES for _, full in imports)


_LIBRARIES = frozenset({"jax", "flax", "equinox", "haiku"})


def _imports(tree: ast.Module) -> Imports:
    return tuple(pair for node in ast.walk(tree) for pair in imported_by(node))


def imported_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with the full name that it stands for."""
    if isinstance(node, ast.Import):
        for name in node.names:
            top = name.name.partition(".")[0]
            yield name.asname or top, name.name if name.asname else top
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from ((name.asname or name.name, f"{node.module}.{name.name}") for name in node.names)


def full_name(name: str, imports: Mapping[str, str]) -> str:
    """Return a dotted name with its first part as it was imported: `jax.numpy.sum` for `jnp.sum`.

    A name that was not imported stays as it is.
    """
    first, dot, attributes = name.partition(".")
    return f"{imports.get(first, first)}{dot}{attributes}"


_QUOTED = re.compile(r"'([^'\"\\]*)'")


def written(node: ast.AST) -> str:
    """Return the source of a node with double quotes around strings, as most people write it."""
    try:
        return _QUOTED.sub(r'"\1"', ast.unparse(node))
    except RecursionError:
        return "…"


def own_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a scope in order, those in its loops and branches included.

    Of functions and classes in it, only the definitions.
    """
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                inner.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                inner += child.body
        waiting += reversed(inner)


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement: bodies, `else`, handlers, cases, `finally`."""
    for name in ("body", "orelse"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body
    yield getattr(statement, "finalbody", [])
