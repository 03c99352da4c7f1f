"""Registrations of user code with JAX: pytree classes, which are permanent, and primitives' rules.

This applies to JAX 0.8 to 0.12.

Private API used: `jax._src.tree_util._registry`, a dictionary that duplicates the registry in C++;
each registration adds the class to it, and looks it up by name, so it can be replaced.
`_lowerings` and `_platform_specific_lowerings` of `jax._src.interpreters.mlir`, and
`fancy_primitive_batchers` of `batching`, the tables to which `register_lowering` and
`primitive_batchers[…] = …` add a rule: no public API reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from jax._src import tree_util
from jax._src.interpreters import batching, mlir
from jax.interpreters import ad

from jaxsight_source.compat.jaxpr_types import Primitive


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


def is_ruled(kind: type) -> bool:
    """Return whether objects of a class are JAX's own and get rules after their creation."""
    return kind.__module__.partition(".")[0] == "jax" and kind.__name__ in _RULED


def rules_of(primitive: Primitive) -> tuple[object, ...]:
    """Return the entries of JAX's tables for a primitive."""
    tables: list[Mapping[Any, object]] = [
        ad.primitive_jvps,
        ad.primitive_transposes,
        batching.fancy_primitive_batchers,
        mlir._lowerings,
        *mlir._platform_specific_lowerings.values(),
    ]
    if isinstance(batching.primitive_batchers, dict):  # JAX 0.8
        tables.append(batching.primitive_batchers)
    return tuple(table.get(primitive) for table in tables)


_RULED = frozenset({"custom_jvp", "custom_vjp", "custom_vmap", "custom_partitioning", "Primitive"})
