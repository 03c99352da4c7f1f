"""Classes that are registered as pytrees: when they are, which cannot be taken back, and by whose functions. Holds for JAX 0.8 to 0.12.

Private API used: `jax._src.tree_util._registry`, the dictionary beside the registry in C++ that each registration enters the
class into; it is looked up by name at each use, so another dictionary can stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from jax._src import tree_util


class _Registry(dict[type, Any]):
    """Tells of each class that is entered."""

    def __init__(self, entries: dict[type, Any], entered: Callable[[type], None]) -> None:
        super().__init__(entries)
        self._entered = entered

    def __setitem__(self, key: type, value: Any) -> None:
        super().__setitem__(key, value)
        self._entered(key)


def watch(entered: Callable[[type], None]) -> None:
    """Have `entered` called with each class that is registered from now on, from within the registration."""
    known: dict[type, Any] = tree_util._registry
    tree_util._registry = _Registry(dict(known), entered)


def flattening(kind: type) -> Any:
    """Return the function that flattens objects of a class; `None` where there is none, or it is JAX's own."""
    entry = tree_util._registry.get(kind)
    flatten = getattr(entry, "to_iter", None)
    # `register_pytree_node_class` registers `methodcaller("tree_flatten")`.
    return getattr(kind, "tree_flatten", None) if isinstance(flatten, methodcaller) else flatten
