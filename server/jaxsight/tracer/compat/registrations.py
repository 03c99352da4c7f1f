"""Registrations of pytree classes with JAX by user code, which are permanent.

This applies to JAX 0.8 to 0.12.

Private API used: `jax._src.tree_util._registry`, a dictionary that duplicates the registry in C++;
each registration adds the class to it, and looks it up by name, so it can be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from jax._src import tree_util


class _Registry(dict[type, Any]):
    """A dictionary that calls a function with each added class."""

    def __init__(self, entries: Mapping[type, object], entered: Callable[[type], None]) -> None:
        super().__init__(entries)
        self._entered = entered

    def __setitem__(self, key: type, value: object) -> None:
        super().__setitem__(key, value)
        self._entered(key)


def watch(entered: Callable[[type], None]) -> None:
    """Have `entered` called with each class that is registered from now on, during registration."""
    entries = tree_util._registry
    # The registry in C++ reports nothing.
    tree_util._registry = _Registry(entries, entered)


def flattening(kind: type) -> object:
    """Return the function that flattens objects of a user's class, else `None`."""
    entry = tree_util._registry.get(kind)
    flatten = getattr(entry, "to_iter", None)
    # `register_pytree_node_class` registers `methodcaller("tree_flatten")`.
    return getattr(kind, "tree_flatten", None) if isinstance(flatten, methodcaller) else flatten
