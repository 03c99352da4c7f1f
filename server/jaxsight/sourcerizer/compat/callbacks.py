"""The host's functions behind callbacks. Holds for JAX 0.8 to 0.12.

Private API used: `_FlatCallback` (its `callback_func` and `in_tree`), and the closures that
`debug_callback` makes, whose variables are called `callback`, `in_tree` and `static_args`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the host's and how it is called; `fixed` are leaves of its arguments that are
    no arrays, by position.
    """

    function: Any
    tree: Any
    fixed: dict[int, Any]

    def arguments(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments, with `leaves` in place of the arrays."""
        return arguments(self.tree, leaves, self.fixed)


def arguments(
    tree: Any, leaves: Sequence[Any], fixed: dict[int, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a flattened call was given, with `leaves` in place of the arrays and the others as they
    are.
    """
    given = iter(leaves)
    filled = [fixed[i] if i in fixed else next(given) for i in range(tree.num_leaves)]
    args, kwargs = jax.tree.unflatten(tree, filled)
    return tuple(args), dict(kwargs)


def flat_callback(callback: Any) -> Called:
    """Of `pure_callback` and `io_callback`."""
    return Called(callback.callback_func, callback.in_tree, {})


def debug_callback(callback: Any) -> Called | None:
    """Of `debug_callback`; None for one that was made by other means than `jax.debug.callback`."""
    code = getattr(callback, "__code__", None)
    if code is None or "callback" not in code.co_freevars:
        return None
    held = {
        name: cell.cell_contents
        for name, cell in zip(code.co_freevars, callback.__closure__, strict=True)
    }
    return Called(held["callback"], held["in_tree"], dict(held.get("static_args", {})))


def print_arguments(
    params: dict[str, Any], leaves: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What `debug_print` was given besides its format."""
    return arguments(params["in_tree"], leaves, dict(params["static_args"]))


def is_ordered(effect: Any) -> bool:
    """Whether a debug callback's effect is the one that keeps its order."""
    return type(effect).__name__.startswith("Ordered")
