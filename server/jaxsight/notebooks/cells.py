"""Which compiled functions a cell calls, and which it has compiled, for `%%kernels`."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jaxsight.profiles.places import library_of
from jaxsight.recording import programs
from jaxsight.recording.programs.compat import compiling
from jaxsight.recording.programs.compat.compiling import definition

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
    """Collects what is called and compiled, each function once for its types.

    The calls in the cell's own text are seen, and in functions that it calls, what is compiled and
    calls of jitted functions.
    """

    found: dict[object, tuple[object, tuple[object, ...], dict[str, object]]] = field(
        default_factory=dict
    )
    _lowered: dict[int, tuple[object, Any]] = field(default_factory=dict)
    """Modules of StableHLO by their `id`, with the jaxpr of each."""
    _executables: list[object] = field(default_factory=list)
    """Kept, as their `id`s are keys of `found`."""

    def recording(self, function: object) -> object:
        """Return a function that does the same, and notes what it is called with."""
        import jax

        compiled = isinstance(function, jax.stages.Compiled)
        if not compiled and not (hasattr(function, "trace") and hasattr(function, "lower")):
            return function
        call: Callable[..., object] = function  # type: ignore[assignment]

        def noted(*args: object, **kwargs: object) -> object:
            self._note(function, args, kwargs)
            return call(*args, **kwargs)

        return noted

    def _note(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
        """Note a call, and return whether its arguments are values."""
        import jax

        leaves, structure = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return False
        types = list(map(_abstract, leaves))
        # A jitted function is known by what it was made of: `JitCall` has another one like it.
        own = getattr(function, "__wrapped__", function)
        if isinstance(function, jax.stages.Compiled):  # instead of what it was compiled from
            self.found.pop(id(function.runtime_executable()), None)
        key = (id(own), structure, tuple(map(repr, types)))
        again, keywords = jax.tree.unflatten(structure, types)
        self.found.setdefault(key, (function, again, keywords))
        return True

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note what JAX calls and compiles of the user's functions in this block."""
        with contextlib.ExitStack() as stack:
            stack.callback(compiling.watch(self, programs.__path__[0]))
            stack.callback(compiling.watch_cached_calls(self._called, self.failed))
            yield

    def _called(
        self, function: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """Note a call whose program JAX has, if the function is the user's."""
        code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
        if code is not None and not library_of(code.co_filename):
            self._note(function, args, kwargs)

    def lowered(self, module: object, lowered: compiling.LoweredJaxpr) -> None:
        """Remember what a module was lowered from."""
        self._lowered[id(module)] = module, lowered.jaxpr

    def compiling(self) -> object:
        """Return nothing: times are not needed."""
        return None

    def compiled(self, before: object, module: object, backend: object, outcome: object) -> None:
        """Note the call that compiled a module, or the program if there was no such call."""
        _, jaxpr = self._lowered.pop(id(module), (None, None))
        if jaxpr is None or isinstance(outcome, Exception):
            return
        defined = definition(jaxpr)
        if not defined.file or library_of(defined.file):
            return
        frame = compiling.caller()
        stage = compiling.stage(frame)
        call = compiling.call(frame) if stage is None else None
        if (
            call is not None
            and getattr(call.function, "__name__", "") == defined.name
            and self._note(call.jitted(), call.arguments, call.keywords)
        ):
            return
        self._executables.append(outcome)
        self.found.setdefault(id(outcome), (stage if stage is not None else jaxpr, (), {}))

    def failed(self, error: Exception) -> None:
        """Show nothing of what cannot be described: the cell's own calls are."""


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
