"""The meaning of a statement of code: a digest that positions, comments and spacing do not change.

It is computed from the syntax tree. The same walk pairs the nodes of two texts with one meaning,
which carries positions from one to the other.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from typing import Final

from jaxsight.source.analysis.syntax_trees import DEFINITIONS, is_text

# `ctx` follows from the place, `kind` is the `u` of a string, and comments on types are only parsed
# when asked for.
_SKIPPED: Final = frozenset({"ctx", "type_comment", "kind", "type_ignores"})


def digest(tree: ast.Module, *, docstrings: bool) -> str:
    """Return a digest of the tree, with or without the docstrings of functions and classes."""
    out: list[str] = []
    stack: list[object] = [tree]
    while stack:
        match stack.pop():
            case ast.AST() as node:
                out.append(type(node).__name__)
                for name in reversed(_fields(node)):
                    value = getattr(node, name, None)
                    if name == "body" and not docstrings and has_docstring(node):
                        value = value[1:]  # type: ignore[index]
                    stack.append(value)
            # With their number, or `[a, [b]]` and `[[a], b]` could have one digest.
            case list() as items:
                out.append(f"[{len(items)}")
                stack.extend(reversed(items))
            # With its type: `1`, `1.0` and `True` are equal, and mean different programs.
            case value:
                out.append(f"{type(value).__name__}:{value!r}")
    # Python strings may contain lone surrogates, which strict UTF-8 refuses.
    return hashlib.blake2b(
        "\0".join(out).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


def paired(first: ast.Module, second: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the pairs of nodes of two trees with equal digests, without docstrings."""
    stack: list[tuple[object, object]] = [(first, second)]
    while stack:
        match stack.pop():
            case (ast.AST() as left, ast.AST() as right):
                yield left, right
                for name in _fields(left):
                    values = [getattr(node, name, None) for node in (left, right)]
                    if name == "body" and isinstance(left, DEFINITIONS):
                        # One of the two may have a docstring that the other does not have.
                        values = [node.body[has_docstring(node) :] for node in (left, right)]  # type: ignore[attr-defined]
                    stack.append((values[0], values[1]))
            case (list() as left, list() as right):
                stack.extend(zip(left, right, strict=True))


def has_docstring(node: ast.AST) -> bool:
    """Return whether a function or class begins with a plain string."""
    return isinstance(node, DEFINITIONS) and is_text(node.body[0])


def _fields(node: ast.AST) -> list[str]:
    return [name for name in node._fields if name not in _SKIPPED]
