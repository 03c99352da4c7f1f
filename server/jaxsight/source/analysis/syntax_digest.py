"""The meaning of a statement of code: a digest that positions, comments and spacing do not change.

It is computed from the syntax tree. The same walk pairs the nodes of two texts with one meaning,
which carries positions from one to the other.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from typing import Final

_SKIPPED: Final = frozenset({"ctx", "type_comment", "kind", "type_ignores"})


def digest(tree: ast.Module, *, docstrings: bool) -> str:
    """Return a digest of the tree, with or without the docstrings of functions and classes."""
    out: list[str] = []
    stack: list[object] = [tree]
    while stack:
        match stack.pop():
            case ast.AST() as node:
                out.append(type(node).__name__)
                for name in reversed(_fields(type(node))):
                    value = getattr(node, name, None)
                    if name == "body" and not docstrings and has_docstring(node):
                        value = value[1:]  # type: ignore[index]
                    stack.append(value)
            case list() as items:
                out.append(f"[{len(items)}")
                stack.extend(reversed(items))
            case value:
                out.append(f"{type(value).__name__}:{value!r}")
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
                for name in _fields(type(left)):
                    left_value, right_value = getattr(left, name, None), getattr(right, name, None)
                    if (
                        name == "body"
                        and isinstance(left_value, list)
                        and isinstance(right_value, list)
                    ):
                        left_value = left_value[has_docstring(left) :]
                        right_value = right_value[has_docstring(right) :]
                    stack.append((left_value, right_value))
            case (list() as left, list() as right):
                stack.extend(zip(left, right, strict=True))


def has_docstring(node: ast.AST) -> bool:
    """Return whether a function or class begins with a plain string."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            match body[0]:
                case ast.Expr(value=ast.Constant(value=str())):
                    return True
    return False


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = _FIELDS.get(kind.__name__)
    if fields is None:
        fields = tuple(name for name in kind._fields if name not in _SKIPPED)
        _FIELDS[kind.__name__] = fields
    return fields


_FIELDS: Final[dict[str, tuple[str, ...]]] = {}
