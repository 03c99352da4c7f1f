"""The host functions of callbacks. Applies to JAX 0.8 to 0.12.

Private API used: `_FlatCallback` (its `callback_func` and `in_tree`), and the closures that
`debug_callback` creates, whose variables are named `callback`, `in_tree` and `static_args`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import PyTreeDef

from jaxsight_source.compat.jaxpr_types import Params


@dataclass(frozen=True, slots=True)
class HostCall:
    """A host function and its arguments; `fixed` maps positions to leaves that are not arrays."""

    function: object
    tree: PyTreeDef
    fixed: dict[int, object]

    def arguments(self, leaves: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return positional and keyword arguments, with `leaves` in place of the arrays."""
        return arguments(self.tree, leaves, self.fixed)


def arguments(
    tree: PyTreeDef, leaves: Sequence[object], fixed: dict[int, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments of a flattened call, with `leaves` in place of the arrays."""
    remaining = iter(leaves)
    filled = [fixed[i] if i in fixed else next(remaining) for i in range(tree.num_leaves)]
    args, kwargs = jax.tree.unflatten(tree, filled)
    return tuple(args), dict(kwargs)


def flat_callback(callback: Any) -> HostCall:
    """Return the function of a `pure_callback` or `io_callback`."""
    return HostCall(callback.callback_func, callback.in_tree, {})


def debug_callback(callback: Any) -> HostCall | None:
    """Return the function of a `debug_callback`.

    Return None if it was not created by `jax.debug.callback`.
    """
    code = getattr(callback, "__code__", None)
    if code is None or "callback" not in code.co_freevars:
        return None
    variables = {
        name: cell.cell_contents
        for name, cell in zip(code.co_freevars, callback.__closure__, strict=True)
    }
    return HostCall(
        variables["callback"], variables["in_tree"], dict(variables.get("static_args", {}))
    )


def print_arguments(
    params: Params, leaves: Sequence[object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments of a `debug_print` after its format."""
    return arguments(params["in_tree"], leaves, dict(params["static_args"]))


def is_ordered(effect: object) -> bool:
    """Return whether a debug callback's effect is the ordered one."""
    return type(effect).__name__.startswith("Ordered")
