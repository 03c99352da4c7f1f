"""The values of a module: constants, written once at the top, and those that the caller passes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import dtypes
from jaxsight_source.compat.equations import call as as_it_was
from jaxsight_source.compat.equations import ruled
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import is_ref
from jaxsight_source.equations.locations import place
from jaxsight_source.equations.registry import equation_key
from jaxsight_source.errors import TooLarge, Unwritable
from jaxsight_source.jaxprs.same.tokens import value_token
from jaxsight_source.options import Constants
from jaxsight_source.text.exprs import NONE, TRUE, call, parsed, without_once
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import ModuleNames
from jaxsight_source.text.statements import assign
from jaxsight_source.values import constants as arrays
from jaxsight_source.values import scalars, spelling


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


class ConstantPool:
    """The constants of a module, and where they are kept."""

    def __init__(self, storage: Constants, names: ModuleNames, passed: PassedValues) -> None:
        self._kept = storage
        self._names = names
        self._passed = passed
        self._exprs: dict[Hashable, tuple[Hashable, ast.expr]] = {}
        """The values with their expressions, by id, token or other keys."""
        self._inlined = 0
        """The size of all packed arrays, in bytes."""
        self.statements: list[ast.stmt] = []
        self.packed: list[tuple[str, arrays.Packed]] = []
        self.derived: list[ast.stmt] = []
        """Constants that are computed from packed or stored ones."""
        self.stored: dict[str, object] = {}
        """Arrays in the companion file, or passed as arguments, by name."""

    def constant(self, value: object) -> ast.expr:
        """Return an expression for a constant: a number, or the name of an array of the module."""
        entry = self._exprs.get(id(value))
        if entry is not None:
            return entry[1]
        if is_ref(value):
            return self._passed.placeholder(value, "ref", "is a mutable array")
        where = getattr(value, "sharding", None)
        if not isinstance(where, jax.sharding.NamedSharding) or not where.mesh.axis_names:
            where = None  # a sharding over a mesh is part of an array's type; others are not
        token = (value_token(value), bool(getattr(value, "weak_type", False)), where)
        same = self._exprs.get(token)
        expr = same[1] if same is not None else self._new(value)
        if same is None and where is not None and flat(expr) not in self.stored:
            name = self._names.fresh("_CONSTANT")
            placed = call("jax.device_put", expr, self.once(spelling.value(where)))
            self.derived.append(assign(name, placed))
            expr = ast.Name(name)
        self._exprs[id(value)] = self._exprs[token] = (value, expr)
        return expr

    def unfolded(self, value: object) -> ast.expr:
        """Return an expression for a constant that the program converts.

        JAX folds conversions of numbers while tracing (`staging.folded`), but not those of arrays.
        """
        expr = self.constant(value)
        if getattr(value, "shape", None) != () or isinstance(expr, ast.Name):
            return expr
        key = ("unfolded", value_token(value), bool(getattr(value, "weak_type", False)))
        return self._assigned(key, value, "_CONSTANT", call("jnp.asarray", expr))

    def named(self, value: object, base: str, expr: ast.expr) -> ast.expr:
        """Return a name at the top of the module for a hashable value with expression `expr`."""
        return self._assigned(("named", value), value, base, expr)

    def once(self, expr: ast.expr) -> ast.expr:
        """Return an expression with the names of its parts that the module has once."""

        def name_of(base: str, value: ast.expr) -> ast.expr:
            return self.named(flat(value), base, value)

        replaced: ast.expr = without_once(expr, name_of)
        return replaced

    def _assigned(self, key: object, value: object, base: str, expr: ast.expr) -> ast.expr:
        entry = self._exprs.get(key)
        if entry is None:
            name = ast.Name(self._names.fresh(base))
            self.statements.append(assign(name, expr))
            entry = self._exprs[key] = (value, name)
        return entry[1]

    def helper(self, name: str, text: str) -> ast.expr:
        """Return the name of a value at the top of the module that is not a program constant."""
        if name not in self._names.module:
            self._names.keep(name)
            self.statements.append(assign(name, parsed(text)))
        return ast.Name(name)

    def _new(self, value: Any) -> ast.expr:
        """Return a number, or the name of a new array."""
        if not hasattr(value, "dtype") and isinstance(value, (bool, int, float, complex)):
            return scalars.number(value)
        if not hasattr(value, "shape"):
            raise Unwritable(value)
        if value.shape == () and not dtypes.is_key(getattr(value, "aval", value)):
            return scalars.scalar(value, weak=bool(getattr(value, "weak_type", False)))
        if not hasattr(value, "nbytes"):
            value = np.asarray(value)  # JAX 0.8 wraps NumPy arrays
        short = arrays.spelled(value)
        in_argument = short is None and self._kept == "argument"
        name = self._names.fresh("constant" if in_argument else "_CONSTANT")
        if short is not None:
            self.statements.append(assign(name, short))
        elif in_argument:
            self.stored[name] = value
        elif dtypes.is_key(getattr(value, "aval", value)):
            data = self.constant(jax.random.key_data(value))
            impl = ast.Constant(dtypes.key_impl(value.dtype))
            self.derived.append(assign(name, call("jax.random.wrap_key_data", data, impl=impl)))
        elif getattr(value, "weak_type", False):
            options = {"new_dtype": scalars.dtype(value.dtype), "weak_type": TRUE}
            strong = self.constant(np.asarray(value))
            weak = call("primitives.convert_element_type_p.bind", strong, **options, sharding=NONE)
            self.derived.append(assign(name, weak))
        elif self._kept == "inline":
            self._inlined += value.nbytes
            if self._inlined > arrays.LARGEST_INLINE:
                raise TooLarge(value, self._inlined)
            self.packed.append((name, arrays.packed(value)))
        else:
            self.stored[name] = value
        return ast.Name(name)
