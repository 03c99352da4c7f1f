"""A module that is being written: what all of its functions share."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxsight_source.compat import avals, derivative_rules, parameters
from jaxsight_source.compat.equations import call as as_it_was
from jaxsight_source.compat.equations import ruled
from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.locations import is_derivative, place
from jaxsight_source.compat.staging import Program, is_ref
from jaxsight_source.equations.registry import equation_key
from jaxsight_source.errors import TooLarge, TooLong, Unwritable
from jaxsight_source.folding.steps import EquationNumbers
from jaxsight_source.jaxprs.same.comparison import Comparison
from jaxsight_source.jaxprs.same.values import value_token
from jaxsight_source.options import Constants, SourceOptions
from jaxsight_source.text.exprs import NONE, TRUE, call, parsed, without_once
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import STAND_IN, ModuleNames, Path, identifier, suggested
from jaxsight_source.text.statements import Raw, assign, lines, renamed
from jaxsight_source.values import constants as arrays
from jaxsight_source.values import spelling
from jaxsight_source.writing.proofs import Proofs
from jaxsight_source.writing.user_names import Fits, user_names

NameOf = Callable[[Var], "str | None"]
"""Returns the user's name for a variable, or None if unknown."""


def primitive_name(equation: Equation) -> str:
    """Return the name of the computation; for a high-level primitive, that of its class."""
    name = str(equation.primitive.name)
    return (
        parameters.class_and_params(equation.params)[0].lower()
        if name == "call_hi_primitive"
        else name
    )


@dataclass(frozen=True, slots=True)
class Original:
    """What is known of the function that is written."""

    size: int = 0
    """The number of equations of its program."""
    most: int | None = None
    """The maximum number of equations written, including those of rules."""
    name_of: NameOf | None = None
    """Returns the user's name for a variable, if tracing recorded names."""
    fits: Fits | None = None
    """Returns whether a user's expression had values of a type, if tracing recorded types."""


@dataclass(slots=True)
class Folds:
    """What is known of equal runs of equations, and of the values that they read."""

    numbers: EquationNumbers = field(default_factory=EquationNumbers)
    """The numbers of the equations."""
    parameters: dict[int, Any] = field(default_factory=dict)
    """The parameters of helper functions, by the family's id."""
    paths: dict[int, Path] = field(default_factory=dict)
    """The paths that read parts of the main function's arguments, by the variable's id."""
    sizes: dict[tuple[object, ...], int] = field(default_factory=dict)
    """The minimum lengths of lists, by the paths that read them."""
    handles: dict[str, str] = field(default_factory=dict)
    """Base names for the elements of a list of functions, by the list's name."""


class Writer:
    """The parts of a module: constants, shared functions, names, and proved expressions."""

    def __init__(self, options: SourceOptions, original: Original | None = None) -> None:
        self.options = options
        self.original = original or Original()
        self.folds = Folds()
        self.names = ModuleNames()
        self.passed = PassedValues(self.names)
        self.constants = ConstantPool(options.constants or "inline", self.names, self.passed)
        self.functions = SharedFunctions(self.names, options.orders)
        self.proofs = Proofs(options.style)
        self.bound: list[str] = []
        """Names of the primitives that are written with `bind`, once for each equation."""
        self.equations = 0
        """The number of equations written; those of a shared function count once."""
        self.user_names: dict[int, str] = {}
        """The user's names, by the variable's id."""
        self.derivative = False
        """Whether the program, or a part of it, is a derivative."""
        self.backward = False
        """Whether the current equations compute cotangents, which have no names of the user's."""

    def find_user_names(self, equations: Sequence[Equation], live: Sequence[Equation]) -> None:
        """Record the user's names for the results of `live`, which are some of the equations."""
        for index, names in self._names_found(equations, live).items():
            pairs = zip(live[index].outvars, names, strict=False)
            self.user_names.update((id(var), name) for var, name in pairs)

    def _names_found(
        self, equations: Sequence[Equation], live: Sequence[Equation]
    ) -> dict[int, Sequence[str]]:
        """Return the user's names for results of equations, by position in `live`."""
        if not self.options.user_names:
            return {}
        self.derivative = self.derivative or any(map(is_derivative, equations))
        recorded: dict[int, Sequence[str]] = {}
        if self.original.name_of is not None:
            for index, equation in enumerate(live):
                names = [self.original.name_of(var) for var in equation.outvars]
                if any(names):
                    other = suggested(primitive_name(equation))
                    recorded[index] = [identifier(name) if name else other for name in names]
        if recorded or self.backward:
            return recorded
        positions = {id(equation): index for index, equation in enumerate(live)}
        named = user_names(equations, derivative=self.derivative, fits=self.original.fits)
        return {
            positions[id(equations[index])]: names
            for index, names in named.items()
            if id(equations[index]) in positions
        }

    def bound_length(self) -> None:
        """Raise `TooLong` for a text that grows far beyond its program."""
        most = self.original.most
        if most is not None and self.equations > most:
            written = f"more than {most:,} equations to write"
            raise TooLong(written, self.original.size, self.options.derivatives)


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
        self.packed: list[ast.stmt] = []
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
            return spelling.number(value)
        if not hasattr(value, "shape"):
            raise Unwritable(value)
        if value.shape == () and not avals.is_key(getattr(value, "aval", value)):
            return spelling.scalar(value, weak=bool(getattr(value, "weak_type", False)))
        if not hasattr(value, "nbytes"):
            value = np.asarray(value)  # JAX 0.8 wraps NumPy arrays
        short = arrays.spelled(value)
        in_argument = short is None and self._kept == "argument"
        name = self._names.fresh("constant" if in_argument else "_CONSTANT")
        if short is not None:
            self.statements.append(assign(name, short))
        elif in_argument:
            self.stored[name] = value
        elif avals.is_key(getattr(value, "aval", value)):
            data = self.constant(jax.random.key_data(value))
            impl = ast.Constant(avals.key_impl(value.dtype))
            self.derived.append(assign(name, call("jax.random.wrap_key_data", data, impl=impl)))
        elif getattr(value, "weak_type", False):
            options = {"new_dtype": spelling.dtype(value.dtype), "weak_type": TRUE}
            strong = self.constant(np.asarray(value))
            weak = call("primitives.convert_element_type_p.bind", strong, **options, sharding=NONE)
            self.derived.append(assign(name, weak))
        elif self._kept == "inline":
            self._inlined += value.nbytes
            if self._inlined > arrays.LARGEST_INLINE:
                raise TooLarge(value, self._inlined)
            self.packed.append(Raw(arrays.packed(name, value)))
        else:
            self.stored[name] = value
        return ast.Name(name)


class SharedFunctions:
    """The functions at the top of a module, by what they compute."""

    def __init__(self, names: ModuleNames, orders: int) -> None:
        self._names = names
        self._orders = orders
        self.statements: list[ast.stmt] = []
        self.inside: list[tuple[object, str]] = []
        """Keys and names of the functions with custom rules that are being written where they are
        called.
        """
        self._shared: dict[Hashable, tuple[Hashable, str, int]] = {}
        """Each function, with the least number of enclosing rules at which its text is complete."""
        self._customs: dict[Hashable, list[tuple[Program, str, int]]] = {}
        self._texts: dict[str, str] = {}
        """The names of functions by their text, without the name."""
        self._building: list[str] = []
        self._rules = 0
        """The number of custom rules that are being written, each inside the one before."""
        self._cut = 0
        """The number of rules that were not written because they are nested too deeply."""

    @contextmanager
    def rule(self) -> Iterator[None]:
        """Enter the writing of a custom rule.

        Raises:
            derivative_rules.Refused: if the rule is nested too deeply to be written.
        """
        if self._rules >= self._orders:
            self._cut += 1
            orders = "1 order" if self._orders == 1 else f"{self._orders} orders"
            raise derivative_rules.RuleFailed(f"rules are written for {orders} of derivatives")
        self._rules += 1
        try:
            yield
        finally:
            self._rules -= 1

    def shared(
        self, key: object, keep: object, base: str, build: Callable[[str], list[ast.stmt]]
    ) -> ast.expr:
        """Return the name of a function at the top of the module.

        It is written once for each `key`, and once for equal text. `build` receives the name and
        writes the function, together with others whose names start with it. `keep` is kept alive.
        """
        entry = self._shared.get(key)
        if entry is not None and entry[2] <= self._rules:
            self._cut += entry[2] > 0
            return ast.Name(entry[1])
        cut = self._cut
        stand_in = f"{STAND_IN}{len(self._building)}__"
        self._building.append(stand_in)
        start = len(self.statements)
        around, self.inside = self.inside, []  # not visible at the top of the module
        try:
            statements = build(stand_in)
        except derivative_rules.Outlived:
            del self.statements[start:]
            raise
        finally:
            self._building.pop()
            self.inside = around
        text = "\n".join(line.text for line in lines(statements)).replace(stand_in, "")
        name = self._texts.get(text)
        if name is None:
            name = self._names.fresh(identifier(base, "function"))
            final = renamed([*self.statements[start:], *statements], stand_in, name)
            for statement in final:
                if isinstance(statement, ast.FunctionDef):
                    self._names.keep(statement.name)
            self.statements[start:] = final
            self._texts[text] = name
        self._shared[key] = (keep, name, self._rules if self._cut > cut else 0)
        return ast.Name(name)

    def custom(
        self, identity: object, program: Program, base: str, build: Callable[[str], list[ast.stmt]]
    ) -> ast.expr:
        """Return the name of a shared function whose rules may call it.

        It is keyed by its rule and its program.
        """
        for written, name, rules in self._customs.get(identity, ()):
            if rules <= self._rules and Comparison().programs(written, program) is None:
                self._cut += rules > 0
                return ast.Name(name)
        entries = self._customs.setdefault(identity, [])

        def built(name: str) -> list[ast.stmt]:
            entries.append((program, name, 0))
            try:
                return build(name)
            finally:
                entries.pop()

        key = ("custom", identity, id(program.jaxpr))
        function = self.shared(key, program, base, built)
        entries.append((program, flat(function), self._shared[key][2]))
        return function

    def helper(self, name: str, build: Callable[[], ast.FunctionDef]) -> str:
        """Return the name of a function of jaxsight's own; write it if the module lacks it."""
        if not any(
            isinstance(statement, ast.FunctionDef) and statement.name == name
            for statement in self.statements
        ):
            self._names.keep(name)
            self.statements.append(build())
        return name
