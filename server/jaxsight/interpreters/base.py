"""What interpreters of jaxprs share: rules by primitive, and the environment that variables are
read from.

Knows no primitive and computes nothing. Variables are known by identity, since classes of JAX's
differ in how they compare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

R = TypeVar("R", bound=Callable[..., Any])
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
        """Registers a rule. A primitive has one rule: a second one is an error."""

        def register(rule: R) -> R:
            for name in primitives:
                if name in self._rules:
                    raise ValueError(f"two rules for {name}")
                self._rules[name] = rule
            return rule

        return register

    def of(self, primitive: str) -> R | None:
        return self._rules.get(primitive)

    def names(self) -> frozenset[str]:
        return frozenset(self._rules)


class Environment(Generic[V]):
    """What each variable stands for; an inner environment sees those around it."""

    __slots__ = ("_around", "_values")

    def __init__(self, around: Environment[V] | None = None) -> None:
        self._values: dict[int, tuple[Any, V]] = {}
        self._around = around

    def write(self, var: Any, value: V) -> None:
        self._values[id(var)] = (var, value)

    def read(self, var: Any) -> V:
        """Raises `KeyError` for a variable that was never written."""
        environment: Environment[V] | None = self
        while environment is not None:
            found = environment._values.get(id(var))
            if found is not None:
                return found[1]
            environment = environment._around
        raise KeyError(var)
