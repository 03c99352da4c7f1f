"""Which compiled functions a cell calls, and which it compiles, for `%%kernels`."""

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
class CellCalls:
    """Collects what is called and compiled in the cell's own text, each function once for types."""

    found: dict[object, tuple[object, tuple[object, ...], dict[str, object]]] = field(
        default_factory=dict
    )

    def recording(self, function: object) -> object:
        """Return a function that does the same, and notes what it is called with."""
        import jax

        lowered = getattr(function, "__self__", None)
        compiles = isinstance(lowered, jax.stages.Lowered) and lowered.compile == function
        is_jitted = hasattr(function, "trace") and hasattr(function, "lower")
        if not (is_jitted or compiles or isinstance(function, jax.stages.Compiled)):
            return function
        call: Callable[..., Any] = function  # type: ignore[assignment]

        def noted(*args: object, **kwargs: object) -> object:
            if is_jitted:
                self._note(function, args, kwargs)
                return call(*args, **kwargs)
            result = call(*args, **kwargs)
            compiled: Any = result if compiles else function
            stage = lowered if compiles else function
            self.found.setdefault(compiled.runtime_executable(), (stage, (), {}))
            return result

        return noted

    def _note(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Note a call whose arguments are values."""
        import jax

        leaves, structure = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return
        types = list(map(_abstract, leaves))
        # A jitted function is known by what it was made of: a cell may make it again.
        key = (id(getattr(function, "__wrapped__", function)), structure, tuple(map(repr, types)))
        again, keywords = jax.tree.unflatten(structure, types)
        self.found.setdefault(key, (function, again, keywords))


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
