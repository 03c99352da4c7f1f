"""The functions of JAX that take functions: which arguments these are, and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

CallArguments: TypeAlias = tuple[tuple[object, ...], dict[str, object]]
"""The arguments of a call, by position and by name."""


@dataclass(frozen=True, slots=True)
class Api:
    """A function of JAX that takes functions.

    Attributes:
        name: its public name, as it is written.
        functions: the positions and names of the arguments that are functions.
        sequences: the same for sequences of functions.
        curried: whether it returns a function that is called with the operands.
    """

    name: str
    functions: tuple[tuple[int, str], ...] = ((0, "f"),)
    sequences: tuple[tuple[int, str], ...] = ()
    curried: bool = False

    def with_functions(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        replaced: Callable[[object], object],
    ) -> CallArguments:
        """Return the arguments with the functions in them replaced."""

        def replaced_each(argument: object) -> object:
            if isinstance(argument, (tuple, list)):
                return type(argument)(map(replaced, argument))
            return argument

        positional, named = list(args), dict(kwargs)
        for places, change in ((self.functions, replaced), (self.sequences, replaced_each)):
            for index, name in places:
                if index < len(positional):
                    positional[index] = change(positional[index])
                elif name in named:
                    named[name] = change(named[name])
        return tuple(positional), named


_CURRIED = (
    "jit", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "checkpoint",
    "make_jaxpr", "named_call",
)  # fmt: skip

_APIS = (
    *(Api(f"jax.{name}", ((0, "fun"),), curried=True) for name in _CURRIED),
    *(Api(f"jax.{name}", ((0, "fun"),)) for name in ("jvp", "vjp", "linearize", "eval_shape")),
    *(Api(f"jax.lax.{name}") for name in ("scan", "map")),
    Api("jax.shard_map", curried=True),
    Api("jax.lax.associative_scan", ((0, "fn"),)),
    Api("jax.lax.while_loop", ((0, "cond_fun"), (1, "body_fun"))),
    Api("jax.lax.fori_loop", ((2, "body_fun"),)),
    Api("jax.lax.cond", ((1, "true_fun"), (2, "false_fun"))),
    Api("jax.lax.switch", (), ((1, "branches"),)),
    Api("jax.lax.reduce", ((2, "computation"),)),
    Api("jax.lax.custom_root", ((0, "f"), (2, "solve"), (3, "tangent_solve"))),
    Api("jax.lax.custom_linear_solve", ((0, "matvec"), (2, "solve"), (3, "transpose_solve"))),
)

APIS: dict[str, Api] = {api.name: api for api in _APIS}
"""By public name."""

BINDS_PROGRAMS = frozenset({
    "jax.checkpoint", "jax.jit", "jax.lax.associative_scan", "jax.lax.cond",
    "jax.lax.custom_linear_solve", "jax.lax.custom_root", "jax.lax.fori_loop", "jax.lax.map",
    "jax.lax.scan", "jax.lax.switch", "jax.lax.while_loop", "jax.shard_map",
})  # fmt: skip
"""The functions that bind primitives with programs in them, or few others."""

PASS_ANYTHING = frozenset({
    "jax.checkpoint", "jax.grad", "jax.hessian", "jax.jacfwd", "jax.jacrev", "jax.jit",
    "jax.value_and_grad",
})  # fmt: skip
"""The functions that pass arguments on that are not traced, whatever they are."""

RETURN_FUNCTIONS = frozenset({"jax.vjp", "jax.linearize"})
"""The functions whose second result is a function, which is a pytree of what it captured."""

CUSTOM = {
    "jax.custom_jvp": ("fun", "jvp"),
    "jax.custom_vjp": ("fun", "fwd", "bwd"),
    "jax.custom_batching.custom_vmap": ("fun", "vmap_rule"),
}
"""Classes that hold functions: the attributes."""

RULES = {
    "jax.custom_jvp": "defjvp",
    "jax.custom_vjp": "defvjp",
    "jax.custom_batching.custom_vmap": "def_vmap",
}
"""The methods of these classes that take the functions after the first."""
