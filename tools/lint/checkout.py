"""The files that checks read, each read and parsed once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

SERVER = "server"
PACKAGE = f"{SERVER}/jaxsight"
"""The core."""
Node = TypeVar("Node", bound=ast.AST)


class Offender(NamedTuple):
    """A place that a check objects to."""

    path: str
    """Below the root of the checkout."""
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Module:
    """The syntax tree of a module, with its nodes by type."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)

    @cached_property
    def _nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            found[type(node)].append(node)
            for name in node._fields:
                child = getattr(node, name, None)
                if isinstance(child, list):
                    waiting += [each for each in child if isinstance(each, ast.AST)]
                elif isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    waiting.append(child)
        return found

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of one type, in no particular order."""
        return self._nodes.get(kind, [])  # type: ignore[return-value]

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return the functions, methods included."""
        return [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield the line and dotted name of all that is imported anywhere.

        `from a import b` gives `a.b`, and a relative import a name that begins with a dot.
        """
        for node in self.nodes(ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        for origin in self.nodes(ast.ImportFrom):
            base = "." * origin.level + (origin.module or "")
            for alias in origin.names:
                yield origin.lineno, f"{base}.{alias.name}"


class Checkout:
    """A checkout of this repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}
        self._modules: dict[str, Module] = {}

    def files(self, pattern: str) -> list[str]:
        """Return the paths of the files that match a pattern below the root, sorted."""
        found = [path for path in self.root.glob(pattern) if path.is_file()]
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    def exists(self, path: str) -> bool:
        """Return whether there is such a file or folder."""
        return (self.root / path).exists()

    def text(self, path: str) -> str:
        """Return the text of a file."""
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8")
        return self._texts[path]

    def module(self, path: str) -> Module:
        """Return a module of Python."""
        if path not in self._modules:
            self._modules[path] = Module(path, self.text(path))
        return self._modules[path]

    @cached_property
    def modules(self) -> list[Module]:
        """The modules of all packages, sorted by path."""
        return [self.module(path) for path in self.files(f"{SERVER}/**/*.py")]


def inside(path: str) -> str:
    """Return a path below the core, or else below `server/`, rather than below the root."""
    return path.removeprefix(f"{PACKAGE}/").removeprefix(f"{SERVER}/")


def outside(name: str) -> str:
    """Return the path below the root of what `inside` gives."""
    return f"{SERVER if name.startswith('jaxsight_') else PACKAGE}/{name}"


def line_at(text: str, offset: int) -> int:
    """Return the number of the line that an offset is on."""
    return text.count("\n", 0, offset) + 1
