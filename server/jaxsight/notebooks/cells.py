"""Which compiled functions a cell calls, for `%%kernels`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SEEN = "_jaxsight_seen_"
"""The name in a cell's code of what looks at the functions that it calls."""


class WrapCalls(ast.NodeTransformer):
    """Has every function that a cell calls looked at first: `f(x)` becomes `seen(f)(x)`."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Return the same call with its function wrapped."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node  # Python looks at who calls it
        looked = ast.Call(ast.Name(SEEN, ast.Load()), [node.func], [])
        node.func = ast.copy_location(looked, node.func)
        return ast.fix_missing_locations(node)


@dataclass(slots=True)
class SeenCalls:
    """Collects the calls of jitted and compiled functions, each once for its types."""

    found: dict[object, tuple[object, tuple[object, ...], dict[str, object]]] = field(
        default_factory=dict
    )

    def seen(self, function: object) -> object:
        """Return a function that does the same, and notes what it is called with."""
        import jax

        compiled = isinstance(function, jax.stages.Compiled)
        if not compiled and not (hasattr(function, "trace") and hasattr(function, "lower")):
            return function
        call: Callable[..., object] = function  # type: ignore[assignment]

        def noted(*args: object, **kwargs: object) -> object:
            leaves, structure = jax.tree.flatten((args, kwargs))
            if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
                types = list(map(_abstract, leaves))
                key = (id(function), structure, tuple(map(repr, types)))
                again, keywords = jax.tree.unflatten(structure, types)
                self.found.setdefault(key, (function, again, keywords))
            return call(*args, **kwargs)

        return noted


def _abstract(leaf: object) -> object:
    """Return the type of an array, which may be donated to the call; other values stay."""
    import jax
    import numpy

    if isinstance(leaf, jax.Array | numpy.ndarray):
        sharding = leaf.sharding if isinstance(leaf, jax.Array) else None
        weak = bool(getattr(leaf, "weak_type", False))
        several = sharding if sharding is not None and len(sharding.device_set) > 1 else None
        make: Any = jax.ShapeDtypeStruct
        return make(leaf.shape, leaf.dtype, sharding=several, weak_type=weak)
    return leaf
