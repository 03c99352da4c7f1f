"""Values without an expression, which the caller passes to the written function."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass

from jaxsight_source.compat.equations import call as as_it_was
from jaxsight_source.compat.equations import ruled
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.equations.claims import equation_key
from jaxsight_source.equations.locations import place
from jaxsight_source.text.names import ModuleNames


class HostFunction:
    """Takes the place of a callback's function; whoever writes the module defines `name` there."""

    def __init__(self, name: str) -> None:
        """Stand for a function that the module has under this name."""
        self.name = name
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> object:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(f"{self.name} is only written")


@dataclass(slots=True)
class Placeholder:
    """A value without an expression, which the caller passes to the written function."""

    name: str
    value: object
    why: str


class PassedValues:
    """The placeholders of a module."""

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._placeholders: dict[int, Placeholder] = {}
        self._functions: dict[object, Callable[..., object]] = {}

    @property
    def placeholders(self) -> list[Placeholder]:
        return [*self._placeholders.values()]

    def placeholder(self, value: object, base: str, why: str) -> ast.expr:
        """Return a name for a value that the caller passes, or that the module defines."""
        if isinstance(value, HostFunction):
            self._names.keep(value.name)
            return ast.Name(value.name)
        placeholder = self._placeholders.get(id(value))
        if placeholder is None:
            placeholder = Placeholder(self._names.fresh(base), value, why)
            self._placeholders[id(value)] = placeholder
        return ast.Name(placeholder.name)

    def function_of(self, equation: Equation) -> Callable[..., object]:
        """Return a function that computes an equation, the same one for equal equations."""
        key = equation_key(equation)
        if key not in self._functions:
            self._functions[key] = functools.partial(as_it_was, equation)
        return self._functions[key]

    def rules_of(self, equation: Equation, base: str, why: str) -> ast.expr:
        """Return a decorator, passed by the caller, that adds an equation's derivative rules."""
        key = ("rules", equation_key(equation))
        if key not in self._functions:
            self._functions[key] = functools.partial(ruled, equation)
        where = f" at {at}" if (at := place(equation)) else ""
        reason = f"gives `{base}` its original derivative rules{where} ({why})"
        return self.placeholder(self._functions[key], f"{base}_rules", reason)

    def structure(self, tree: object, why: str) -> ast.expr:
        """Return a name for a result's structure without an expression; equal ones share a name."""
        for placeholder in self._placeholders.values():
            if isinstance(placeholder.value, type(tree)) and placeholder.value == tree:
                return ast.Name(placeholder.name)
        return self.placeholder(tree, "structure", why)
