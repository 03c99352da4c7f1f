"""What the variables of a scope may be bound to and hold, and which of their values are dead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxsight.rules.text.expressions import dotted
from jaxsight.source.abstract_interpretation.interpreter import AbstractState

_NUMPY = ("np.", "numpy.", "onp.")


@dataclass(frozen=True, slots=True)
class Donor:
    """A function that donates arguments."""

    name: str
    """How it is called: `step`, `self.step`."""
    positions: frozenset[int]
    """The positions of the arguments that it donates."""
    keywords: frozenset[str]
    """Their names, where these are known."""


@dataclass(frozen=True, slots=True)
class Dead:
    """A donated value: reading it raises an error."""

    path: str
    """The variable that was donated."""
    call: ast.Call
    donor: Donor


Token = object
"""A value, by the expression that makes it; in a loop, that of the iteration before is another one,
which no variable is certain to be."""
ON_HOST: Token = object()
"""The value of what is no JAX array, which cannot be donated."""
Tokens = frozenset[Token]


@dataclass(slots=True)
class DonatedVariables(AbstractState[Tokens]):
    """What the variables of a scope may be bound to at one point, and which values are dead."""

    holds: dict[Token, Tokens] = field(default_factory=dict)
    """What containers may hold."""
    dead: dict[Token, Dead] = field(default_factory=dict)

    def copy(self) -> DonatedVariables:
        return DonatedVariables(dict(self.names), dict(self.holds), dict(self.dead))

    def join(self, other: DonatedVariables) -> DonatedVariables:
        """Return what is known whichever way was gone: a value is dead if it is after both."""
        joined = AbstractState.join(self, other)
        joined.dead = {token: dead for token, dead in self.dead.items() if token in other.dead}
        for token, held in other.holds.items():
            joined.holds[token] = joined.holds.get(token, frozenset()) | held
        return joined

    def either(self, path: str, one: Tokens | None, other: Tokens | None) -> Tokens:
        return (one or at_first(path)) | (other or at_first(path))


def at_first(path: str) -> Tokens:
    """Return what a variable is that nothing has bound yet."""
    return frozenset({("at first", path)})


def leaves(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the elements of displays, of nested ones too, and other expressions as they are."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from leaves(part)
        case ast.Dict(values=parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield node


def is_on_host(node: ast.expr | None) -> bool:
    """Whether a value is no JAX array: of NumPy, or a number."""
    match node:
        case ast.Constant():
            return True
        case ast.Call(func=function):
            name = dotted(function)
            return name.startswith(_NUMPY) or name.endswith("device_get")
        case _:
            return False


def unwrapped(node: ast.expr) -> ast.expr:
    """Return what an expression has the buffers of, where it makes no new ones.

    `jnp.asarray(x)` is `x`, and so are the leaves of `jax.tree.map(lambda x: x, tree)`.
    """
    match node:
        case ast.Call(func=function, args=[argument], keywords=[]):
            return argument if dotted(function) in ("jnp.asarray", "jax.numpy.asarray") else node
        case ast.Call(
            func=function,
            args=[ast.Lambda(args=ast.arguments(args=[parameter]), body=ast.Name(id=name)), tree],
            keywords=[],
        ) if parameter.arg == name and dotted(function) in _MAPS:
            return tree
        case _:
            return node


_MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map", "tree_map", "jtu.tree_map"})
