"""Which functions of JAX and its libraries trace the functions that they are given, and how."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jaxsight.rules.text.expressions import dotted, keyword
from jaxsight.rules.text.statements import full_name

How = Literal["staged", "batched", "lifted"]
"""Traced to a program that runs later; run once for a whole batch; run with tracers each time."""
STAGED: How = "staged"
BATCHED: How = "batched"
LIFTED: How = "lifted"


@dataclass(frozen=True, slots=True)
class Tracing:
    """How a function is traced."""

    by: str
    """The transformation as it is written: `jax.jit`."""
    kind: How
    only: tuple[int, ...] | None = None
    """The positions of the arguments that are traced; `None` for all."""
    static: tuple[int, ...] = ()
    static_names: tuple[str, ...] = ()
    donated: tuple[int, ...] = ()
    donated_names: tuple[str, ...] = ()
    unknown: bool = False
    """Which arguments are static is not to be seen."""
    library: str = "jax"
    """Where the transformation is from."""
    compiled: bool = False
    """Whether it is `jit` or its like, which keeps what it traced for the next call."""

    def traces(self, parameters: tuple[str, ...], bound: int = 0) -> frozenset[str]:
        """Return which of a function's parameters are traced.

        Args:
            parameters: their names, `self` included.
            bound: how many of the first ones have values before: `self` of a bound method.
        """
        if self.unknown:
            return frozenset()
        unbound = parameters[bound:]
        count = len(unbound)
        static = {at % count if -count <= at < count else at for at in self.static} if count else ()
        return frozenset(
            name
            for at, name in enumerate(unbound)
            if (self.only is None or at in self.only or at - count in self.only)
            and at not in static
            and name not in self.static_names
        )


@dataclass(frozen=True, slots=True)
class Handed:
    """A function, by an expression, that is handed to a transformation."""

    function: ast.expr
    tracing: Tracing


_JIT = {
    "jax.jit", "jax.pjit", "jax.pmap", "jax.experimental.pjit.pjit", "equinox.filter_jit",
    "equinox.filter_pmap", "flax.nnx.jit", "flax.nnx.pmap", "flax.linen.jit", "haiku.jit",
}  # fmt: skip
_WHOLE = {
    "jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint", "jax.shard_map",
    "jax.experimental.shard_map.shard_map", "jax.experimental.checkify.checkify",
    "jax.experimental.pallas.pallas_call", "equinox.filter_checkpoint", "flax.nnx.remat",
}  # fmt: skip
_BATCHED = {"jax.vmap", "equinox.filter_vmap", "flax.nnx.vmap"}
_GRADIENTS = {
    "jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian",
    "equinox.filter_grad", "equinox.filter_value_and_grad", "flax.nnx.grad",
    "flax.nnx.value_and_grad",
}  # fmt: skip
_LIFTED = {
    "jax.jvp", "jax.vjp", "jax.linearize", "jax.custom_jvp", "jax.custom_vjp",
    "jax.custom_gradient",
}  # fmt: skip
_BODIES: Mapping[str, tuple[tuple[int, tuple[str, ...]], ...]] = {
    "jax.lax.scan": ((0, ("f",)),),
    "jax.lax.map": ((0, ("f",)),),
    "jax.lax.fori_loop": ((2, ("body_fun",)),),
    "jax.lax.while_loop": ((0, ("cond_fun",)), (1, ("body_fun",))),
    "jax.lax.cond": ((1, ("true_fun",)), (2, ("false_fun",))),
    "jax.lax.switch": ((1, ("branches",)),),
}
"""By function: where the bodies stand among its arguments, and by which name."""

CALLBACKS = frozenset(
    {
        "jax.debug.callback", "jax.debug.print", "jax.pure_callback",
        "jax.experimental.io_callback", "jax.experimental.host_callback.call",
        "jax.experimental.host_callback.id_tap",
    }
)  # fmt: skip
"""Functions that call what they are given with values."""

_KINDS: Mapping[str, How] = {
    **dict.fromkeys(_JIT | _WHOLE, STAGED),
    **dict.fromkeys(_BATCHED, BATCHED),
    **dict.fromkeys(_GRADIENTS | _LIFTED, LIFTED),
}
NAMES = frozenset({*_KINDS, *_BODIES})
"""All transformations, by their full names."""


def transformation(node: ast.expr, imports: Mapping[str, str]) -> str:
    """Return the full name of the transformation that an expression names, else nothing."""
    name = dotted(node)
    full = full_name(name, imports) if name else ""
    return full if full in NAMES else ""


def of_decorator(decorator: ast.expr, imports: Mapping[str, str]) -> Tracing | None:
    """Return how a decorator has a function traced: `@jax.jit`, `@partial(jax.jit, …)`."""
    if not isinstance(decorator, ast.Call):
        full = transformation(decorator, imports)
        return tracing(full, dotted(decorator), None, imports) if full in _KINDS else None
    if is_partial(decorator.func, imports) and decorator.args:
        full = transformation(decorator.args[0], imports)
        written = dotted(decorator.args[0])
    else:
        full, written = transformation(decorator.func, imports), dotted(decorator.func)
    return tracing(full, written, decorator, imports) if full in _KINDS else None


def is_partial(function: ast.expr, imports: Mapping[str, str]) -> bool:
    """Whether an expression names `functools.partial`, or what other libraries call so."""
    full = full_name(dotted(function), imports)
    return full in {"functools.partial", "partial", "jax.tree_util.Partial", "jax.util.partial"}


def handed_in(call: ast.Call, imports: Mapping[str, str]) -> Iterator[Handed]:
    """Yield the functions that a call hands to a transformation."""
    full = transformation(call.func, imports)
    if not full:
        return
    if full in _KINDS:
        function = call.args[0] if call.args else keyword(call, "fun", "f", "func", "kernel")
        if function is not None:
            yield from _unwrapped(
                function, tracing(full, dotted(call.func), call, imports), imports
            )
        return
    for at, names in _BODIES[full]:
        body = call.args[at] if at < len(call.args) else keyword(call, *names)
        bodies = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
        for handed_body in bodies:
            if handed_body is not None:
                yield from _unwrapped(handed_body, Tracing(dotted(call.func), STAGED), imports)


def _unwrapped(function: ast.expr, how: Tracing, imports: Mapping[str, str]) -> Iterator[Handed]:
    """Yield a function; for `jax.vmap(f)` what is inside, which is traced in this way too."""
    if isinstance(function, ast.Call) and transformation(function.func, imports) in _KINDS:
        exact = not how.static and not how.static_names and not how.unknown
        for inner in handed_in(function, imports):
            only = None if how.only is None and exact else ()
            yield replace(inner, tracing=replace(how, only=only, static=(), static_names=()))
    else:
        yield Handed(function, how)


def tracing(full: str, written: str, call: ast.Call | None, imports: Mapping[str, str]) -> Tracing:
    """Return how a transformation traces, by its name and the arguments besides the function."""
    kind, library = _KINDS[full], full.partition(".")[0]
    how = Tracing(written, kind, library=library, compiled=full in _JIT)
    if full in _GRADIENTS:
        if library != "jax":
            return replace(how, only=(0,))
        argnums = keyword(call, "argnums") if call is not None else None
        if argnums is None and call is not None and not is_partial(call.func, imports):
            argnums = call.args[1] if len(call.args) > 1 else None
        numbers = _integers(argnums) if argnums is not None else (0,)
        return replace(how, only=numbers) if numbers is not None else replace(how, unknown=True)
    if call is None:
        return how
    if full in _BATCHED:
        axes = keyword(call, "in_axes")
        if axes is None and not is_partial(call.func, imports) and len(call.args) > 1:
            axes = call.args[1]
        return replace(how, only=_mapped(axes))
    return _with_arguments(how, call)


def _mapped(axes: ast.expr | None) -> tuple[int, ...] | None:
    """Return the positions that `in_axes` maps; `None` for all."""
    if not isinstance(axes, ast.Tuple | ast.List):
        return None
    return tuple(
        position
        for position, axis in enumerate(axes.elts)
        if not (isinstance(axis, ast.Constant) and axis.value is None)
    )


def _with_arguments(how: Tracing, call: ast.Call) -> Tracing:
    """Return how a transformation traces that is told which arguments are static, or donated."""
    given = keyword(call, "donate_argnums"), keyword(call, "donate_argnames")
    donated = [_literal(value) if value is not None else () for value in given]
    how = replace(
        how,
        donated=tuple(at for at in _items(donated[0]) if isinstance(at, int)),
        donated_names=tuple(name for name in _items(donated[1]) if isinstance(name, str)),
    )
    for name in ("static_argnums", "static_broadcasted_argnums", "nondiff_argnums"):
        if (value := keyword(call, name)) is not None:
            numbers = _integers(value)
            if numbers is None:
                return replace(how, unknown=True)
            how = replace(how, static=numbers)
    if (value := keyword(call, "static_argnames")) is not None:
        words = tuple(_items(_literal(value)))
        names = tuple(word for word in words if isinstance(word, str))
        if len(names) < len(words):
            return replace(how, unknown=True)
        how = replace(how, static_names=names)
    return how


def _integers(node: ast.expr) -> tuple[int, ...] | None:
    value = _literal(node)
    values = value if isinstance(value, tuple | list) else (value,)
    return tuple(values) if all(type(value) is int for value in values) else None


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple | list | set) else (value,)


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return None
