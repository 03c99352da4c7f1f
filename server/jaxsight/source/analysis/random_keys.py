"""Names of raw PRNG keys, by the functions of `jax.random` that make or take them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from jaxsight.source.analysis.syntax_trees import dotted_name, names_stored

_MODULE = "jax.random."
_MAKE = frozenset({"PRNGKey", "split", "fold_in", "key_data", "clone"})
"""Functions of `jax.random` that return keys."""
_FROM_NUMBERS = frozenset({"PRNGKey", "key", "wrap_key_data", "default_prng_impl"})
"""Those that take none; all others take a key first, or as `key`."""


def key_names(tree: ast.AST, full_name: Callable[[str], str]) -> frozenset[str]:
    """Return the names, dotted as written, that hold keys somewhere in a tree.

    Args:
        tree: the code.
        full_name: returns the full name of an imported object.
    """
    return frozenset(name for node in ast.walk(tree) for name in _names(node, full_name) if name)


def makes_key(node: ast.AST, full_name: Callable[[str], str]) -> bool:
    """Return whether an expression calls a function that returns keys."""
    return isinstance(node, ast.Call) and _function(node, full_name) in _MAKE


def _names(node: ast.AST, full_name: Callable[[str], str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets, value=value) if makes_key(value, full_name):
            for target in targets:
                yield dotted_name(target)
                yield from names_stored(target)
        case ast.Call(args=args, keywords=keywords):
            function = _function(node, full_name)
            if function and function not in _FROM_NUMBERS:
                yield from map(dotted_name, args[:1])
                yield from (dotted_name(word.value) for word in keywords if word.arg == "key")


def _function(call: ast.Call, full_name: Callable[[str], str]) -> str:
    """Return the name of the function in `jax.random` that is called; empty for other calls."""
    name = full_name(dotted_name(call.func))
    return name.removeprefix(_MODULE) if name.startswith(_MODULE) else ""
