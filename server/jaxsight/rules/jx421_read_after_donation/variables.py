"""What the variables of a scope may be bound to and hold, and which of their values are dead."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jaxsight.rules.text.expressions import dotted

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


@dataclass(frozen=True, eq=False, slots=True)
class Dead:
    """A donated value: reading it raises an error."""

    path: str
    """The variable that was donated."""
    call: ast.Call
    donor: Donor


Token = object
ON_HOST = object()
"""The value of what is no JAX array, which cannot be donated."""


@dataclass(slots=True)
class ScopeState:
    """What is known of the variables of a scope at one point."""

    values: dict[str, frozenset[Token]] = field(default_factory=dict)
    """By path (`state`, `state.params`, `buffers[0]`): what it may be bound to."""
    holds: dict[str, frozenset[Token]] = field(default_factory=dict)
    """By path: what a container holds."""
    dead: dict[Token, Dead] = field(default_factory=dict)
    ended: bool = False
    """The statements that follow are not reached."""

    def copy(self) -> ScopeState:
        return ScopeState(dict(self.values), dict(self.holds), dict(self.dead), self.ended)


def joined_state(states: Iterable[ScopeState]) -> ScopeState:
    """Return what is certain after branches: those that end are not followed."""
    reached = [state for state in states if not state.ended]
    if not reached:
        return ScopeState(ended=True)
    first, *further = reached
    joined = first.copy()
    for state in further:
        joined.dead = {token: dead for token, dead in joined.dead.items() if token in state.dead}
        for path in {*joined.values, *state.values}:
            at_first = frozenset({("at first", path)})
            joined.values[path] = joined.values.get(path, at_first) | state.values.get(
                path, at_first
            )
        for path, tokens in state.holds.items():
            joined.holds[path] = joined.holds.get(path, frozenset()) | tokens
    return joined


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


def path_of(node: ast.expr | None) -> str:
    """Return a variable, attribute or element with a constant index as text; else empty."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            before = path_of(value)
            return f"{before}.{name}" if before else ""
        case ast.Subscript(value=value, slice=ast.Constant(value=index)):
            before = path_of(value)
            return f"{before}[{index!r}]" if before else ""
        case _:
            return ""


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
