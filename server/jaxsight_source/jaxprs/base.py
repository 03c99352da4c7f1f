"""Rules by primitive and environments of variables, shared by all jaxpr interpreters.

Nothing here knows a primitive or computes anything. Variables are keyed by identity, because JAX's
classes of variables differ in how they compare.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

R = TypeVar("R", bound=Callable[..., object])
V = TypeVar("V")


class Rules(Generic[R]):
    """Rules by the names of primitives.

    >>> rules: Rules = Rules()
    >>> @rules("exp", "exp2")
    ... def exponential(equation): ...
    >>> rules.of("exp") is exponential
    True
    """

    def __init__(self) -> None:
        self._rules: dict[str, R] = {}

    def __call__(self, *primitives: str) -> Callable[[R], R]:
        """Return a decorator that registers a rule for each primitive.

        The decorator raises `ValueError` for a primitive that already has a rule.
        """

        def register(rule: R) -> R:
            for name in primitives:
                if name in self._rules:
                    raise ValueError(f"two rules for {name}")
                self._rules[name] = rule
            return rule

        return register

    def of(self, primitive: str) -> R | None:
        """Return the rule of a primitive, or None."""
        return self._rules.get(primitive)

    def names(self) -> frozenset[str]:
        return frozenset(self._rules)


class Environment(Generic[V]):
    """The values of variables; an inner environment also reads those around it."""

    __slots__ = ("_around", "_values")

    def __init__(self, around: Environment[V] | None = None) -> None:
        self._values: dict[int, tuple[object, V]] = {}
        self._around = around

    def write(self, var: object, value: V) -> None:
        self._values[id(var)] = (var, value)

    def read(self, var: object) -> V:
        """Return the value of a variable; raise `KeyError` if it was never written."""
        if (entry := self._values.get(id(var))) is not None:
            return entry[1]
        if self._around is None:
            raise KeyError(var)
        return self._around.read(var)


_DEEP = 30_000
"""Frames: a hundred nested loops take a few thousand, most of them JAX's own while tracing."""


@contextlib.contextmanager
def room_for_nesting() -> Iterator[None]:
    """Raise the recursion limit inside the block.

    The walks recurse per level of nesting, never per equation.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@functools.cache
def import_modules(package: str) -> None:
    """Import every module of a package, once: they register their rules."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)
