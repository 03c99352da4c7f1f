"""Candidates as texts of files, and what can be read off their syntax trees."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
"""The definition of a function."""

_FILLED = frozenset(("zeros", "ones", "full", "key", "float", "int"))


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file: the comments at its top, and the rest without comments."""

    header: str
    body: str

    @property
    def whole(self) -> str:
        """The file's text."""
        return f"{self.header}{self.body}\n"

    @property
    def tree(self) -> ast.Module:
        """A new syntax tree of the text, with the positions of `body`."""
        return ast.parse(self.body)

    @property
    def digest(self) -> str:
        """Identifies the text in every process."""
        return hashlib.sha256(self.whole.encode()).hexdigest()[:32]


def of_file(text: str) -> FileText:
    """Read the text of a file."""
    lines = text.splitlines(keepends=True)
    count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return written(ast.parse(text), "".join(lines[:count]))


def written(tree: ast.Module, header: str) -> FileText:
    """Write a syntax tree, with a header."""
    return FileText(header, ast.unparse(ast.fix_missing_locations(tree)))


def edited(text: FileText, edit: Callable[..., bool], *arguments: object) -> FileText | None:
    """Return the text after an edit, if that is smaller.

    `edit(tree, *arguments)` changes the syntax tree; it returns false if it cannot.
    """
    tree = text.tree
    if not edit(tree, *arguments):
        return None
    try:
        smaller = written(tree, text.header)
        compile(smaller.body, "repro", "exec")
    except (SyntaxError, ValueError):
        return None
    return smaller if smaller != text and cost(smaller) < cost(text) else None


def cost(text: FileText) -> tuple[int, int, int]:
    """Return what is minimized: statements, nodes of the syntax tree, characters."""
    return count(text), sum(1 for _ in ast.walk(text.tree)), len(text.body)


def count(text: FileText) -> int:
    """Count the statements of a text, without the values that were filled in."""
    nodes = (node for node in ast.walk(text.tree) if isinstance(node, ast.stmt))
    return sum(not is_filled(node) and not is_text(node) for node in nodes)


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_filled(node: ast.stmt) -> bool:
    """Return whether a statement assigns a constant, such as zeros."""
    return isinstance(node, ast.Assign) and is_constant(node.value)


def is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a constant, or an array of one number."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp():
            return is_constant(node.operand)
        case ast.Tuple() | ast.List():
            return all(map(is_constant, node.elts))
        case ast.Dict():
            return all(key is not None and is_constant(key) for key in node.keys) and all(
                map(is_constant, node.values)
            )
        case ast.Attribute():
            return isinstance(node.value, ast.Name) and node.value.id in ("np", "jnp", "jax")
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _FILLED and all(map(is_constant, node.args))
        case ast.Name():
            return node.id in ("bool", "int", "float", "None", "True", "False")
    return False


def bodies(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield each list of statements as its node and the name of its field, outer ones first."""
    for each in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            value = getattr(each, field, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield each, field


def functions(tree: ast.AST) -> list[Function]:
    """Return all definitions of functions."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)
