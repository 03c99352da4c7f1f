"""Calls of `jax.random` in a text, and what may replace the keys that they are given."""

from __future__ import annotations

import ast
import re

from jaxsight.rules.text.expressions import dotted, keyword
from jaxsight.rules.text.scopes import NameScope

_SHARES = frozenset(
    {
        "fold_in", "key", "PRNGKey", "key_data", "wrap_key_data", "clone", "key_impl", "rbg_key",
        "threefry2x32_key", "unsafe_rbg_key",
    }
)  # fmt: skip
"""Functions of `jax.random` that consume no key."""


def use_of(scope: NameScope, node: ast.AST) -> tuple[str, str] | None:
    """Return the function of `jax.random` that a node calls, and the key as it is written."""
    if not isinstance(node, ast.Call):
        return None
    package, _, function = scope.full(node.func).rpartition(".")
    if package != "jax.random" or function in _SHARES:
        return None
    path = path_of(node.args[0] if node.args else keyword(node, "key"))
    return (function, path) if path else None


def path_of(node: ast.expr | None) -> str:
    """Return a variable, an attribute or an item at a constant as text; else nothing."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{before}.{attr}" if (before := path_of(value)) else ""
        case ast.Subscript(value=value, slice=ast.Constant(value=index)):
            return f"{before}[{index!r}]" if (before := path_of(value)) else ""
        case _:
            return ""


def root_of(path: str) -> str:
    """Return the variable of a path."""
    return re.split(r"[.\[]", path)[0]


def handed(scope: NameScope, node: ast.AST) -> set[str]:
    """Return the variables that calls are given, or methods are called of.

    What they are bound to may be changed there.
    """
    names: set[str] = set()
    for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        if scope.full(call.func).startswith(("jax.", "numpy.")):
            continue
        names |= {each.id for each in call.args if isinstance(each, ast.Name)}
        names |= {each.value.id for each in call.keywords if isinstance(each.value, ast.Name)}
        if isinstance(call.func, ast.Attribute):
            names.add(dotted(call.func).partition(".")[0])
    return names


def is_assigned(node: ast.AST, path: str) -> bool:
    """Whether a node assigns a part of a path, or an item that may be it."""
    return any(
        isinstance(inner, ast.Attribute | ast.Subscript)
        and isinstance(inner.ctx, ast.Store | ast.Del)
        and path.startswith(path_of(inner))
        for inner in ast.walk(node)
    )
