"""What user code registers with JAX: classes as pytrees, which cannot be taken back, and rules of
primitives. Holds for JAX 0.8 to 0.12.

Private API used: `jax._src.tree_util._registry`, the dictionary beside the registry in C++ that
each registration enters the class into; it is looked up by name at each use, so another dictionary
can stand in its place. `_lowerings` and `_platform_specific_lowerings` of
`jax._src.interpreters.mlir` and `fancy_primitive_batchers` of `batching` beside it, the tables that
`register_lowering` and `primitive_batchers[…] = …` enter a rule into: nothing public reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from jax._src import tree_util
from jax._src.interpreters import batching, mlir
from jax.interpreters import ad


class _Registry(dict[type, Any]):
    """Tells of each class that is entered."""

    def __init__(self, entries: dict[type, Any], entered: Callable[[type], None]) -> None:
        super().__init__(entries)
        self._entered = entered

    def __setitem__(self, key: type, value: Any) -> None:
        super().__setitem__(key, value)
        self._entered(key)


def watch(entered: Callable[[type], None]) -> None:
    """Have `entered` called with each class that is registered from now on, from within the
    registration.
    """
    known: dict[type, Any] = tree_util._registry
    tree_util._registry = _Registry(dict(known), entered)


def flattening(kind: type) -> Any:
    """Return the function that flattens objects of a class; `None` where there is none, or it is
    JAX's own.
    """
    entry = tree_util._registry.get(kind)
    flatten = getattr(entry, "to_iter", None)
    # `register_pytree_node_class` registers `methodcaller("tree_flatten")`.
    return getattr(kind, "tree_flatten", None) if isinstance(flatten, methodcaller) else flatten


def is_ruled(kind: type) -> bool:
    """Return whether objects of this class are JAX's own and are given rules after they are
    made.
    """
    return kind.__module__.partition(".")[0] == "jax" and kind.__name__ in _RULED


def rules_of(primitive: Any) -> tuple[object, ...]:
    """Return what the tables of JAX hold for a primitive."""
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
