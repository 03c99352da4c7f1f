"""Walks programs and writes them as functions of a module.

`Writer` holds the parts of the module: its functions, constants, names, and proved expressions.
`Scope` is one function that is being written. Rules for single equations yield candidate
expressions (`view`); rules for equations with inner programs (`STRUCTURES`) write the functions for
these and return a call.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.interpreters.base import Environment, Rules
from jaxsight.interpreters.compat import derivative_rules, dtypes, hi_primitives, rule_identity
from jaxsight.interpreters.compat.equations import call as as_it_was
from jaxsight.interpreters.compat.equations import ruled
from jaxsight.interpreters.compat.locations import scope as scope_of
from jaxsight.interpreters.compat.staging import (
    Program,
    is_dropped,
    is_literal,
    is_ref,
    is_tracer,
    on_its_mesh,
    opened,
    variable,
)
from jaxsight.interpreters.same.comparison import Comparison
from jaxsight.interpreters.same.liveness import live, needed_by, read_by_live
from jaxsight.interpreters.same.tokens import value_token
from jaxsight.sourcerizer.compat.sources import is_backward
from jaxsight.sourcerizer.equations.fallback import by_name, by_package, by_primitive
from jaxsight.sourcerizer.equations.idioms import Found, Window, candidates, found, program_key
from jaxsight.sourcerizer.equations.view import LAX, PRETTY, View
from jaxsight.sourcerizer.folding.calls import NOTHING, Returned, folded
from jaxsight.sourcerizer.folding.repeats import Listed, Repeat, Repeats, listed, with_repeats
from jaxsight.sourcerizer.options import Options
from jaxsight.sourcerizer.proof import cache as remembered
from jaxsight.sourcerizer.proof.prover import Claim, Prover
from jaxsight.sourcerizer.text.exprs import (
    NONE,
    Atom,
    Call,
    Expr,
    Lambda,
    Once,
    Sequence_,
    Slot,
    Star,
    call,
    fill,
    is_identifier,
    is_number,
    parsed,
    tuple_,
    uses_python,
)
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.text.names import (
    STAND_IN,
    ModuleNames,
    Names,
    after_expression,
    identifier,
    of_path,
    place,
    suggested,
    without_number,
)
from jaxsight.sourcerizer.text.paths import Path
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    Function,
    Remark,
    Return,
    Statement,
    lines,
    renamed,
)
from jaxsight.sourcerizer.values import constants as arrays
from jaxsight.sourcerizer.values import spelling
from jaxsight.sourcerizer.writing.contexts import contexts
from jaxsight.sourcerizer.writing.contexts import place as under
from jaxsight.sourcerizer.writing.user_names import Fits, is_of_derivative, user_names

_log = logging.getLogger(__name__)

DEEPEST = 12
"""The maximum depth of nested functions; deeper ones move to the top of the module and take
captured values as arguments. (Python itself allows a hundred levels of indentation.)
"""


MANY = 6
"""The minimum number of values that are passed several times under a common name."""

MOST_LINES = 3
"""The maximum number of lines of text for each equation of a program."""

LEAST_REFUSED = 3000
"""The number of lines that are allowed for any program, however few its equations."""

LONGEST_RULES = 8
"""The maximum number of equations written, including those of rules, for each equation of a
program.
"""


class Unsourceable(Exception):
    """An equation has no public expression, or none that could be proved."""

    def __init__(self, primitive: str, why: str, place: str = "") -> None:
        self.primitive = primitive
        self.why = why
        self.place = place
        super().__init__(f"cannot write {primitive}{' at ' + place if place else ''}: {why}")


class TooLong(Exception):
    """A text has many more lines than its program has equations."""

    def __init__(self, written: str, equations: int, derivatives: str) -> None:
        advice = {"exact": 'derivatives="first"', "first": 'derivatives="primal"'}.get(derivatives)
        why = f", mostly derivative rules; help: use {advice}" if advice else ""
        super().__init__(f"{written} for {equations:,} equations{why}")


class NotTheSame(Unsourceable):
    """A written text is not the same program, or has other results when it runs."""


@dataclass(slots=True)
class Placeholder:
    """A value without an expression, which the caller passes to the written function."""

    name: str
    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class Proved:
    """An expression with slots, and the tree of its results (a pytree of result positions)."""

    expr: Expr
    results: Any
    bound: bool = False
    """Whether it calls `bind`."""


WRITTEN = Proved(NONE, None)
"""The result of a rule that wrote its own statements: there is nothing to assign."""

NameOf = Callable[[Any], "str | None"]
"""Returns the user's name for a variable, or None if unknown."""

Structure = Callable[["Scope", Any], "Proved | None"]
"""A rule for an equation with inner programs.

The slots of the returned expression are filled; None leaves the equation to other rules.
"""

STRUCTURES: Rules[Structure] = Rules()

PRETTY_STRUCTURES: Rules[Structure] = Rules()
"""The same for the pretty style, tried first. The whole text is compared at the end."""

Absorb = Callable[[Sequence[Any], int, Callable[[Any], int]], int]
"""Returns how many equations from a position on belong together (1: only this one), given how often
each variable is used. The structure rule of the last equation receives all of them.
"""

ABSORBS: Rules[Absorb] = Rules()


@dataclass(slots=True)
class Writer:
    """A module that is being written."""

    options: Options
    names: ModuleNames = field(default_factory=ModuleNames)
    prover: Prover = field(default_factory=Prover)
    functions: list[Statement] = field(default_factory=list)
    constants: list[Statement] = field(default_factory=list)
    packed: list[tuple[str, arrays.Packed]] = field(default_factory=list)
    made: list[Statement] = field(default_factory=list)
    """Constants that are computed from packed or stored ones."""
    stored: dict[str, Any] = field(default_factory=dict)
    """Arrays in the companion file, or passed as arguments, by name."""
    placeholders: dict[int, Placeholder] = field(default_factory=dict)
    _functions: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    bound: list[str] = field(default_factory=list)
    """Names of the primitives that are written with `bind`, once for each equation."""
    equations: int = 0
    most: int | None = None
    """The maximum number of equations written, including those of rules."""
    size: int = 0
    """The number of equations of the program."""
    name_of: NameOf | None = None
    """Returns the user's name for a variable, if tracing recorded names."""
    fits: Fits | None = None
    """Returns whether a user's expression had values of a type, if tracing recorded types."""
    derivative: bool = False
    """Whether the program, or a part of it, is a derivative."""
    backward: bool = False
    """Whether the current equations compute cotangents, which have no names of the user's."""
    _spelled: dict[Any, Proved] = field(default_factory=dict)
    _idioms: dict[Any, Proved | None] = field(default_factory=dict)
    _shared: dict[Any, tuple[Any, str, int]] = field(default_factory=dict)
    """Each function with the minimum number of enclosing rules at which its text is complete."""
    _building: list[str] = field(default_factory=list)
    _rules: int = 0
    _cut: int = 0
    """The number of rules that were not written because they are nested too deeply."""
    _inlined: int = 0
    _customs: dict[Any, list[tuple[Program, str, int]]] = field(default_factory=dict)
    inside: list[tuple[Any, str]] = field(default_factory=list)
    """Keys and names of the functions with custom rules that are being written where they are
    called.
    """
    _texts: dict[str, str] = field(default_factory=dict)
    folds: dict[int, Any] = field(default_factory=dict)
    """The parameters of helper functions, by the family's id."""
    paths: dict[int, Path] = field(default_factory=dict)
    """The paths that read parts of the main function's arguments, by the variable's id."""
    sizes: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """The minimum lengths of lists, by the paths that read them."""
    handles: dict[str, str] = field(default_factory=dict)
    """Base names for the elements of a list of functions, by the list's name."""
    given: dict[int, str] = field(default_factory=dict)
    """The user's names, by the variable's id."""
    known: dict[Any, int] = field(default_factory=dict)
    """A cache of numbers for equal equations."""
    programs: list[Listed] = field(default_factory=list)
    """The programs that were written, to find their repeats."""
    listing: Listed | None = None
    """The program of these that is being written."""
    repeats: Repeats | None = None
    """The repeated runs that become functions, once known."""
    repeating: list[Repeat] = field(default_factory=list)
    """The repeats whose functions are being written."""
    _constants: dict[Any, tuple[Any, Expr]] = field(default_factory=dict)

    @contextmanager
    def rule(self) -> Iterator[None]:
        """Enter the writing of a custom rule.

        Raises:
            derivative_rules.Refused: if the rule is nested too deeply to be written.
        """
        if self._rules >= self.options.orders:
            self._cut += 1
            count = self.options.orders
            orders = "1 order" if count == 1 else f"{count} orders"
            raise derivative_rules.Refused(f"rules are written for {orders} of derivatives")
        self._rules += 1
        try:
            yield
        finally:
            self._rules -= 1

    def user_names(self, equations: Sequence[Any], kept: Sequence[Any]) -> dict[int, Sequence[str]]:
        """Return the user's names for results of equations, by position in `kept`."""
        if not self.options.user_names:
            return {}
        self.derivative = self.derivative or is_of_derivative(equations)
        seen: dict[int, Sequence[str]] = {}
        if self.name_of is not None:
            for index, equation in enumerate(kept):
                names = self._seen_names(equation, self.name_of)
                if names is not None:
                    seen[index] = names
        if seen or self.backward:
            return seen
        positions = {id(equation): index for index, equation in enumerate(kept)}
        named = user_names(equations, derivative=self.derivative, fits=self.fits)
        return {
            positions[id(equations[index])]: names
            for index, names in named.items()
            if id(equations[index]) in positions
        }

    def _seen_names(self, equation: Any, name_of: NameOf) -> list[str] | None:
        names = [name_of(var) for var in equation.outvars]
        if not any(names):
            return None
        other = suggested(_primitive(equation))
        return [identifier(name) if name else other for name in names]

    def constant(self, value: Any) -> Expr:
        """Return an expression for a constant: a number, or the name of an array of the module."""
        known = self._constants.get(id(value))
        if known is not None:
            return known[1]
        if is_ref(value):
            return self.placeholder(value, "ref", "is a mutable array")
        where = _mesh_of(value)
        token = (value_token(value), bool(getattr(value, "weak_type", False)), where)
        same = self._constants.get(token)
        made = same[1] if same is not None else self._new_constant(value)
        if same is None and where is not None and flat(made) not in self.stored:
            name = self.names.fresh("_CONSTANT")
            self.made.append(Assign(name, call("jax.device_put", made, spelling.value(where))))
            made = Atom(name)
        self._constants[id(value)] = self._constants[token] = (value, made)
        return made

    def unfolded(self, value: Any) -> Expr:
        """Return an expression for a constant that the program converts.

        JAX folds conversions of numbers while tracing, but not those of arrays.
        """
        made = self.constant(value)
        if getattr(value, "shape", None) != () or (
            isinstance(made, Atom) and is_identifier(made.text)
        ):
            return made
        key = ("unfolded", value_token(value), bool(getattr(value, "weak_type", False)))
        known = self._constants.get(key)
        if known is None:
            known = (value, Atom(self.names.fresh("_CONSTANT")))
            self.constants.append(Assign(flat(known[1]), call("jnp.asarray", made)))
            self._constants[key] = known
        return known[1]

    def _new_constant(self, value: Any) -> Expr:
        if not hasattr(value, "dtype") and isinstance(value, (bool, int, float, complex)):
            return spelling.number(value)
        if not hasattr(value, "shape"):
            raise spelling.Unwritable(value)
        if value.shape == () and not dtypes.is_key(getattr(value, "aval", value)):
            return scalar(value, weak=bool(getattr(value, "weak_type", False)))
        if not hasattr(value, "nbytes"):
            value = np.asarray(value)  # JAX 0.8 wraps NumPy arrays
        short = arrays.spelled(value)
        in_argument = short is None and self.options.constants == "argument"
        name = self.names.fresh("constant" if in_argument else "_CONSTANT")
        if short is not None:
            self.constants.append(Assign(name, short))
        elif in_argument:
            self.stored[name] = value
        elif dtypes.is_key(getattr(value, "aval", value)):
            data = self.constant(jax.random.key_data(value))
            impl = spelling.text(dtypes.key_impl(value.dtype))
            self.made.append(Assign(name, call("jax.random.wrap_key_data", data, impl=impl)))
        elif getattr(value, "weak_type", False):
            given = {"new_dtype": spelling.dtype(value.dtype), "weak_type": Atom("True")}
            strong = self.constant(np.asarray(value))
            weak = call("primitives.convert_element_type_p.bind", strong, **given, sharding=NONE)
            self.made.append(Assign(name, weak))
        elif self.options.constants == "inline":
            self._inlined += value.nbytes
            if self._inlined > arrays.LARGEST_INLINE:
                raise arrays.TooLarge(value, self._inlined)
            self.packed.append((name, arrays.packed(value)))
        else:
            self.stored[name] = value
        return Atom(name)

    def helper(self, name: str, text: str) -> Expr:
        """Return the name of a value at the top of the module that is not a program constant."""
        if name not in self.names.module:
            self.names.keep(name)
            self.constants.append(Assign(name, parsed(text)))
        return Atom(name)

    def named(self, value: Any, base: str, expr: Expr) -> Expr:
        """Return a name at the top of the module for a hashable value with expression `expr`."""
        known = self._constants.get(("named", value))
        if known is None:
            known = (value, Atom(self.names.fresh(base)))
            self.constants.append(Assign(flat(known[1]), expr))
            self._constants["named", value] = known
        return known[1]

    def placeholder(self, value: Any, base: str, why: str) -> Expr:
        """Return a name for a value that the caller passes."""
        known = self.placeholders.get(id(value))
        if known is None:
            known = Placeholder(self.names.fresh(base), value, why)
            self.placeholders[id(value)] = known
        return Atom(known.name)

    def bound_length(self) -> None:
        """Raise `TooLong` for a text that grows far beyond its program."""
        if self.most is not None and self.equations > self.most:
            written = f"more than {self.most:,} equations to write"
            raise TooLong(written, self.size, self.options.derivatives)

    def function_of(self, equation: Any) -> Callable[..., Any]:
        """Return a function that computes an equation, the same one for equal equations."""
        key = equation_key(equation)
        if key not in self._functions:
            self._functions[key] = functools.partial(as_it_was, equation)
        return self._functions[key]

    def rules_of(self, equation: Any, base: str, why: str) -> Expr:
        """Return a decorator, passed by the caller, that adds an equation's derivative rules."""
        key = ("rules", equation_key(equation))
        if key not in self._functions:
            self._functions[key] = functools.partial(ruled, equation)
        where = f" at {at}" if (at := place(equation)) else ""
        said = f"gives `{base}` its original derivative rules{where} ({why})"
        return self.placeholder(self._functions[key], f"{base}_rules", said)

    def structure(self, tree: Any, why: str) -> Expr:
        """Return a name for a result's structure without an expression; equal ones share a name."""
        for known in self.placeholders.values():
            if isinstance(known.value, type(tree)) and known.value == tree:
                return Atom(known.name)
        return self.placeholder(tree, "structure", why)

    def shared(
        self, key: Any, keep: Any, base: str, build: Callable[[str], list[Statement]]
    ) -> Expr:
        """Return the name of a function at the top of the module.

        It is written once for each `key`, and once for equal text. `build` receives the name and
        writes the function, together with others whose names start with it.
        """
        known = self._shared.get(key)
        if known is not None and known[2] <= self._rules:
            self._cut += known[2] > 0
            return Atom(known[1])
        cut = self._cut
        stand_in = f"{STAND_IN}{len(self._building)}__"
        self._building.append(stand_in)
        start, first = len(self.functions), len(self.programs)
        around, self.inside = self.inside, []  # not visible at the top of the module
        try:
            statements = build(stand_in)
        except derivative_rules.Outlived:
            del self.functions[start:]
            raise
        finally:
            self._building.pop()
            self.inside = around
        text = "\n".join(line.text for line in lines(statements)).replace(stand_in, "")
        name = self._texts.get(text)
        if name is None:
            name = self.names.fresh(identifier(base, "function"))
            made = renamed([*self.functions[start:], *statements], stand_in, name)
            for statement in made:
                if isinstance(statement, Function):
                    self.names.keep(statement.name)
            self.functions[start:] = made
            self._texts[text] = name
        else:
            del self.programs[first:]
        self._shared[key] = (keep, name, self._rules if self._cut > cut else 0)
        return Atom(name)

    def custom(
        self, identity: Any, program: Program, base: str, build: Callable[[str], list[Statement]]
    ) -> Expr:
        """Return the name of a shared function whose rules may call it.

        It is keyed by its rule and its program.
        """
        for known, name, rules in self._customs.get(identity, ()):
            if rules <= self._rules and Comparison().programs(known, program) is None:
                self._cut += rules > 0
                return Atom(name)
        entries = self._customs.setdefault(identity, [])

        def built(name: str) -> list[Statement]:
            entries.append((program, name, 0))
            try:
                return build(name)
            finally:
                entries.pop()

        key = ("custom", identity, id(program.jaxpr))
        made = self.shared(key, program, base, built)
        entries.append((program, flat(made), self._shared[key][2]))
        return made

    def scope(self) -> Scope:
        """Return a scope for a function at the top of the module."""
        return Scope(self, None)

    def prove(self, view_of: Callable[[int], View], claim: Claim, key: Any) -> Proved:
        """Return the best proved expression of an equation, or raise `Unsourceable`."""
        made = self._prove(view_of, claim, self._sources())
        text = flat(made.expr)
        made = Proved(made.expr, made.results, bound=".bind(" in text)
        remembered.keep(self._key_anywhere(key), made, text)
        if key is not None:
            self._spelled[key] = made
        return made

    def proved(self, key: Any) -> Proved | None:
        """Return the proved expression for such an equation, from this text or another, or None."""
        if key is None:
            return None
        made: Proved | None = self._spelled.get(key)
        if made is None:
            made = remembered.proved(self._key_anywhere(key))
            if made is not None:
                self._spelled[key] = made
        return made

    def _key_anywhere(self, key: Any) -> Any:
        return remembered.key_of(self.options.style, self.prover.axes, key)

    def _prove(
        self,
        view_of: Callable[[int], View],
        claim: Claim,
        sources: Iterable[Callable[[View], Iterator[Expr]]],
    ) -> Proved:
        tried = 0
        whys: list[str] = []
        seen: set[str] = set()
        for source in sources:
            for variant in range(VARIANTS):
                view = view_of(variant)
                candidates = source(view)
                while True:
                    try:
                        candidate = next(candidates, None)
                    except (spelling.Unwritable, KeyError) as error:
                        whys.append(str(error))
                        break
                    if candidate is None:
                        break
                    text = flat(candidate)
                    if text in seen:
                        continue
                    seen.add(text)
                    tried += 1
                    results = self.prover.proves(candidate, claim)
                    if results is not None:
                        return Proved(candidate, *results)
        name = claim.equations[-1].primitive.name
        raise Unsourceable(
            name,
            whys[0]
            if whys and not tried
            else f"none of {tried} candidate expressions is the same program"
            + (f" ({whys[0]})" if whys else ""),
        )

    def prove_window(self, windows: Sequence[Window], key: Any) -> Expr | None:
        """Return a proved expression with slots for several equations together, or None."""
        if key is not None and key in self._idioms:
            known = self._idioms[key]
            return known.expr if known else None
        proved = self._first_proved(windows)
        if key is not None:
            self._idioms[key] = proved
        return proved.expr if proved else None

    def _first_proved(self, windows: Sequence[Window]) -> Proved | None:
        seen: set[str] = set()
        for window in windows:
            claim = Claim(window.equations, window.inputs, [window.output])
            for candidate in candidates(window, self.options.style == "pretty"):
                text = flat(candidate)
                if text in seen:
                    continue
                seen.add(text)
                results = self.prover.proves(candidate, claim)
                if results == (0,):
                    return Proved(candidate, 0)
        return None

    def prove_whole(self, view_of: Callable[[int], View], claim: Claim, key: Any) -> Proved | None:
        """Return a proved public call for an equation with inner programs, or None."""
        if key is not None and key in self._idioms:
            return self._idioms[key]
        try:
            sources = [_pretty, _plain] if self.options.style == "pretty" else [_plain]
            proved = self._prove(view_of, claim, sources)
        except Unsourceable:
            proved = None
        if key is not None:
            self._idioms[key] = proved
        return proved

    def _sources(self) -> Iterator[Callable[[View], Iterator[Expr]]]:
        if self.options.style == "pretty":
            yield _pretty
        yield _plain
        yield by_name
        yield by_package
        yield by_primitive


def _pretty(view: View) -> Iterator[Expr]:
    rule = PRETTY.of(view.name)
    return rule(view) if rule else iter(())


def _plain(view: View) -> Iterator[Expr]:
    rule = LAX.of(view.name)
    return rule(view) if rule else iter(())


VARIANTS = 3
"""The number of spellings of literals: Python numbers, numbers with a dtype, arrays."""


def scalar(value: Any, weak: bool) -> Expr:
    """Return a scalar that keeps its dtype and weak type wherever it is passed."""
    found = np.asarray(value)
    if weak:
        return spelling.plain(found)
    return spelling.typed(found)


def _literal(atom: Any, variant: int) -> Expr:
    value = np.asarray(atom.val)
    dtype = getattr(atom.aval, "dtype", value.dtype)
    value = value.astype(dtype)
    if variant == 0:
        try:
            return spelling.plain(value)
        except spelling.Unwritable:
            return spelling.typed(value)
    if variant == 1:
        return spelling.typed(value)
    return call("jnp.asarray", spelling.typed(value))


def _mesh_of(value: Any) -> Any:
    """Return an array's sharding over a mesh, which is part of its type, or None."""
    sharding = getattr(value, "sharding", None)
    is_on_mesh = isinstance(sharding, jax.sharding.NamedSharding) and sharding.mesh.axis_names
    return sharding if is_on_mesh else None


def _converted(program: Program) -> set[int]:
    """Return the ids of the variables that a program converts; JAX folds conversions of numbers."""
    return {
        id(equation.invars[0])
        for equation in program.jaxpr.eqns
        if equation.primitive.name == "convert_element_type"
    }


def _array(atom: Any) -> Any:
    """Return a literal as an array of its type.

    Raise `Unwritable` for a weak type other than those of Python numbers.
    """
    value = np.asarray(atom.val).astype(atom.aval.dtype)
    if not getattr(atom.aval, "weak_type", False):
        return jnp.asarray(value)
    made = jnp.asarray(value.item())
    if made.dtype != atom.aval.dtype:
        raise spelling.Unwritable(atom.val, "no Python number has its weak type")
    return made


class Scope:
    """A function that is being written: its statements, names and variables."""

    def __init__(self, writer: Writer, around: Scope | None) -> None:
        self.writer = writer
        self.around = around
        self.names: Names = writer.names.function(around.names if around else None)
        self.body: list[Statement] = []
        self.depth: int = around.depth + 1 if around else 0
        self.uses: dict[int, int] = {}
        """How often each variable is read, by its id."""
        self.captured: dict[str, None] = {}
        """Names of enclosing functions that this one reads, in order."""
        self.paths: dict[int, Path] = {}
        """The paths of variables that are parts of other values, by the variable's id."""
        self._environment: Environment[tuple[Scope, Expr]] = Environment(
            around._environment if around else None
        )

    def write(self, var: Any, expr: Expr) -> None:
        """Let `var` stand for `expr`: a name, or an expression with the same value anywhere."""
        self._environment.write(var, (self, expr))

    def alias(self, var: Any, atom: Any) -> None:
        """Let `var` stand for the value of `atom`, here or in an enclosing function."""
        if is_literal(atom):
            value = np.asarray(atom.val).astype(atom.aval.dtype)
            self._environment.write(
                var, (self, scalar(value, bool(getattr(var.aval, "weak_type", False))))
            )
        else:
            with contextlib.suppress(KeyError):  # values that only dead code reads are not written
                self._environment.write(var, self._environment.read(atom))

    def capture(self, program: Program, captured: Sequence[Any]) -> None:
        """Let a program's first inputs stand for atoms of an enclosing function."""
        converted = _converted(program)
        for var, atom in zip(program.jaxpr.invars, captured, strict=False):
            if is_literal(atom) and id(var) in converted:
                self.write(var, self.writer.unfolded(_array(atom)))
            else:
                self.alias(var, atom)

    def read(self, var: Any) -> Expr:
        if var is NOTHING:
            return NONE
        owner, expr = self._environment.read(var)
        if owner is not self and isinstance(expr, Atom):
            scope: Scope | None = self
            while scope is not None and scope is not owner:
                if is_identifier(expr.text) and expr.text not in self.writer.names.module:
                    scope.captured[expr.text] = None
                scope = scope.around
        return expr

    def path(self, var: Any) -> Path | None:
        """Return the path of a variable that is a part of another value, or None."""
        scope: Scope | None = self
        while scope is not None:
            if id(var) in scope.paths:
                return scope.paths[id(var)]
            scope = scope.around
        return None

    def stand(self, var: Any, path: Path) -> None:
        """Let `var` stand for the value at a path."""
        if not path.steps:
            self.paths.pop(id(var), None)
            self.write(var, Atom(path.root))
            return
        self.paths[id(var)] = path
        name = self.names.fresh(path.name)
        self.write(var, Atom(name))
        self.body.append(Assign(name, path.expr))

    def operand(self, atom: Any, weak: bool | None = None) -> Expr:
        """Return an expression for `atom`.

        Literals keep their dtype; `weak` overrides their weak type.
        """
        if not is_literal(atom):
            return self.read(atom)
        dtype = getattr(atom.aval, "dtype", None)
        value = np.asarray(atom.val)
        weak = bool(getattr(atom.aval, "weak_type", False)) if weak is None else weak
        return scalar(value if dtype is None else value.astype(dtype), weak)

    def operands(self, atoms: Sequence[Any], binders: Sequence[Any]) -> list[Expr]:
        """Return arguments for the inputs of an inner program."""
        return [
            self.operand(atom, bool(getattr(binder.aval, "weak_type", False)))
            for atom, binder in zip(atoms, binders, strict=True)
        ]

    def inner(self) -> Scope:
        """Return a scope for a function inside this one."""
        return Scope(self.writer, self)

    def parameters(self, variables: Sequence[Any], bases: Sequence[str] | None = None) -> list[str]:
        """Return names for the inputs of this function."""
        names = []
        for index, var in enumerate(variables):
            base = bases[index] if bases and index < len(bases) else "x"
            name = self.names.fresh(base)
            self.write(var, Atom(name))
            names.append(name)
        return names

    def take_apart(self, names: Sequence[str], whole: str) -> None:
        """Unpack a parameter into several names."""
        self.body.append(Assign(tuple_(map(Atom, names)), Atom(whole)))

    def several(self, values: Sequence[Expr], base: str) -> list[Expr]:
        """Return values that are passed repeatedly; many become one starred tuple."""
        if len(values) < MANY:
            return list(values)
        name = self.names.fresh(base)
        self.body.append(Assign(name, tuple_(values)))
        return [Star(Atom(name))]

    def program(self, program: Program) -> list[Expr]:
        """Write the equations of a program whose inputs are named; return its results."""
        if program.consts:
            self._constants(program)
        self.equations(program.jaxpr.eqns, program.jaxpr.outvars)
        return [self.operand(atom) for atom in program.jaxpr.outvars]

    def _constants(self, program: Program) -> None:
        """Write the constants of a program that are read."""
        converted = _converted(program)
        used = read_by_live(program.jaxpr.outvars, program.jaxpr.eqns)
        needed = set(map(id, needed_by(program)))
        for var, value in zip(program.jaxpr.constvars, program.consts, strict=False):
            if is_tracer(value):
                if id(var) in needed:
                    self.write(var, self._held_by_rule(value))
            elif id(var) in used:
                made = self.writer.unfolded if id(var) in converted else self.writer.constant
                self.write(var, made(value))

    def _held_by_rule(self, tracer: Any) -> Expr:
        """Return the expression of a value that a rule captures from an enclosing program.

        Raises:
            derivative_rules.Outlived: if no enclosing program has the value.
        """
        try:
            return self.read(variable(tracer))
        except KeyError:
            raise derivative_rules.Outlived("it captures values of a finished trace") from None

    def equations(
        self, equations: Sequence[Any], outputs: Sequence[Any], *, named: bool = True
    ) -> None:
        """Write equations.

        `named` says whether the user's names of their results still have to be found.
        """
        kept = live(outputs, equations)
        self.writer.bound_length()
        given = self.writer.given
        if named:
            for index, names in self.writer.user_names(equations, kept).items():
                pairs = zip(kept[index].outvars, names, strict=False)
                given.update((id(var), name) for var, name in pairs)
        around = self.writer.listing
        if self.writer.options.folds:
            kept = self._repeated(folded(kept, outputs, self.writer.known), outputs)
        uses: dict[int, int] = {}
        for atom in itertools.chain(outputs, *(equation.invars for equation in kept)):
            if not is_literal(atom):
                uses[id(atom)] = uses.get(id(atom), 0) + 1
        called: dict[int, list[str]] = {}
        for index, item in enumerate(kept):
            known_as = [_user_name(var, given) for var in item.outvars]
            if any(name != "_" for name in known_as):
                called[index] = known_as
        self.names.promise(itertools.chain.from_iterable(called.values()))
        self.uses |= uses
        windows = self._windows(kept, uses)
        position = 0
        while position < len(kept):
            equation = kept[position]
            if self.writer.listing is not None:
                self.writer.listing.at = position
            if (window := windows.get(position)) is not None:
                group: Sequence[Any] = window.window.equations
                position += len(group)
                self.writer.equations += len(group)
                expr = self.fill(window.expr, window.window.inputs)
                start = len(self.body)
                self._assign(group, Proved(expr, 0), called.get(position - 1), uses)
                self._place(start, equation)
                continue
            absorb = ABSORBS.of(equation.primitive.name)
            count = 1
            if absorb is not None:
                count = absorb(kept, position, lambda var: uses.get(id(var), 0))
            group = kept[position : position + count]
            position += count
            self.writer.equations += count
            start = len(self.body)
            self._group(group, called.get(position - 1), uses)
            self._place(start, group[-1])
        self.writer.listing = around

    def _repeated(self, items: list[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the items with calls of shared functions, or list them to find repeats."""
        writer = self.writer
        if writer.repeats is not None:
            return with_repeats(
                items, outputs, writer.repeats, writer.repeating, self._read_everywhere
            )
        made = listed(items, outputs, self._read_everywhere)
        made.around = (writer.listing, writer.listing.at) if writer.listing else None
        writer.programs.append(made)
        writer.listing = made
        return items

    def _read_everywhere(self, var: Any) -> Expr | None:
        """Return the expression of a variable if it is a number or has a name of the module."""
        try:
            _, expr = self._environment.read(var)
        except KeyError:
            return None
        if isinstance(expr, Atom) and is_identifier(expr.text):
            return expr if expr.text in self.writer.names.module else None
        return expr

    def _place(self, start: int, equation: Any) -> None:
        """Put the statements from `start` on under the equation's context, if it is unusual."""
        try:
            managers = contexts(equation.ctx)
        except spelling.Unwritable as error:
            raise Unsourceable(equation.primitive.name, str(error), place(equation)) from error
        names = scope_of(equation) if self.writer.options.scopes else ""
        if _TRANSFORMATIONS.sub("", names):
            managers.insert(0, call("jax.named_scope", spelling.text(names)))
        under(self.body, start, managers)

    def _windows(self, kept: Sequence[Any], uses: dict[int, int]) -> dict[int, Found]:
        """Return windows of equations by their first position; few in the plain style."""
        pretty = self.writer.options.style == "pretty"
        return found(kept, uses, self.writer.prove_window, pretty)

    def _group(
        self, group: Sequence[Any], names: Sequence[str] | None, uses: dict[int, int]
    ) -> None:
        equation = group[-1]
        structure = STRUCTURES.of(equation.primitive.name)
        proved = self._idiom(equation) if structure and len(group) == 1 else None
        if proved is None and structure:
            before = self.writer.backward
            self.writer.backward = before or is_backward(equation)
            proved = structure(self, group if len(group) > 1 else equation)
            self.writer.backward = before
        if proved is None:
            if len(group) > 1:
                for single in group:
                    self._group([single], None, uses)
                return
            proved = self._leaf(equation)
        if proved is not WRITTEN:
            self._assign(group, proved, names, uses)

    def _assign(
        self,
        group: Sequence[Any],
        proved: Proved,
        names: Sequence[str] | None,
        uses: dict[int, int],
    ) -> None:
        equation = group[-1]
        outputs = equation.outvars
        if not outputs or not any(uses.get(id(var)) for var in outputs):
            self.body.append(Effect(proved.expr, group))
            return
        base = next(iter(getattr(equation, "bases", ())), "") or self._base(equation, proved)
        if len(outputs) == 1 and proved.results == 0 and not self.writer.options.shapes:
            given = names[0] if names and names[0].strip("_") else base
            name = self.names.fresh(given, promised=names is not None)
            self.write(outputs[0], Atom(name))
            self.body.append(Assign(name, proved.expr, group, "", names is not None))
            return
        targets: list[str] = []
        others = getattr(equation, "bases", ()) or [base] * len(outputs)
        bases = [
            name if name.strip("_") else other
            for name, other in zip(names or others, others, strict=True)
        ]
        for var, base in zip(outputs, bases, strict=True):
            if is_dropped(var) or not uses.get(id(var)):
                targets.append("_")
                continue
            fresh = self.names.fresh(base, promised=names is not None)
            self.write(var, Atom(fresh))
            targets.append(fresh)
        comment = ""
        if self.writer.options.shapes:
            comment = ", ".join(
                _shape(var.aval)
                for var, target in zip(outputs, targets, strict=True)
                if target != "_"
            )
        pattern = _pattern(proved.results, targets)
        self.body.append(Assign(pattern, proved.expr, group, comment, names is not None))

    def _base(self, equation: Any, proved: Proved) -> str:
        """Return a base name for a result that the user has no name for."""
        if self.writer.options.style == "pretty":
            return after_expression(proved.expr) or suggested(_primitive(equation))
        return _called(equation) or suggested(_primitive(equation))

    def _leaf(self, equation: Any) -> Proved:
        key = _key(equation)
        proved = self.writer.proved(key)
        if proved is None:
            try:
                with on_its_mesh(equation.ctx):
                    proved = self.writer.prove(*_claimed(equation), key)
            except Unsourceable as error:
                return self.passed_in(equation, error.why)
        if proved.bound:
            self.writer.bound.append(equation.primitive.name)
        return self._filled(proved, equation)

    def _idiom(self, equation: Any) -> Proved | None:
        """Return a proved public call for an equation with inner programs, or None."""
        name = equation.primitive.name
        if self.writer.options.style != "pretty":
            if LAX.of(name) is None:
                return None
            proved = self.writer.prove_whole(*_claimed(equation), _key(equation))
            return self._filled(proved, equation) if proved else None
        if (structure := PRETTY_STRUCTURES.of(name)) is not None:
            return structure(self, equation)
        if PRETTY.of(name) is None:
            return None
        proved = self.writer.prove_whole(*_claimed(equation), _key(equation))
        return self._filled(proved, equation) if proved else None

    def passed_in(self, equation: Any, reason: str, base: str = "") -> Proved:
        """Return a call of a function, passed by the caller, that computes the equation.

        `base` is its name. It is for equations that cannot be written as source, for `reason`.
        """
        name, operands = _primitive(equation), [self.operand(atom) for atom in equation.invars]
        given = ", ".join(str(_shape(atom.aval)) for atom in equation.invars)
        gives = ", ".join(str(_shape(var.aval)) for var in equation.outvars)
        where = f" at {at}" if (at := place(equation)) else ""
        why = (
            f"computes `{name}`{where}, from {given or 'nothing'} to {gives or 'nothing'} "
            f"({reason})"
        )
        function = self.writer.function_of(equation)
        passed = self.writer.placeholder(function, base or suggested(name), " ".join(why.split()))
        return Proved(call(passed, *operands), nested_results(len(equation.outvars)))

    def _filled(self, proved: Proved, equation: Any) -> Proved:
        variables = [atom for atom in equation.invars if not is_literal(atom)]
        return Proved(self.fill(proved.expr, variables), proved.results)

    def fill(self, expr: Expr, variables: Sequence[Any]) -> Expr:
        """Return an expression with its slots filled by variables.

        If all of these are numbers, they become arrays: Python would compute with them itself.
        """
        operands = [self.read(var) for var in variables]
        if operands and all(map(is_number, operands)) and uses_python(expr):
            operands = [call("jnp.asarray", operand) for operand in operands]
        filled: Expr = fill(expr, operands)
        if isinstance(filled, Call) and any(isinstance(item, Once) for item in filled.items):
            items = (self._once(item) if isinstance(item, Once) else item for item in filled.items)
            return Call(filled.function, tuple(items))
        return filled

    def _once(self, shared: Once) -> Expr:
        """Return the name of an expression that is written at the top of the module."""
        return self.writer.named(flat(shared.value), shared.base, shared.value)

    def function(
        self,
        name: str,
        program: Program,
        captured: Sequence[Any],
        parameters: Callable[[Scope], tuple[str, ...]],
        results: Callable[[list[Expr]], Expr],
    ) -> Expr:
        """Write an inner program as a function; return an expression for it.

        `captured` are atoms here, for which the program's first inputs stand; `parameters` names
        the other inputs in the new scope.
        """
        scope = self.inner()
        scope.capture(program, captured)
        named = parameters(scope)
        value = results(scope.program(program))
        if scope.depth <= DEEPEST:
            fresh = self.names.fresh(name)
            self.body.append(Function(fresh, named, [*scope.body, Return(value)]))
            return Atom(fresh)
        fresh = self.writer.names.fresh(name)
        lifted = (*scope.captured, *named)
        self.writer.functions.append(Function(fresh, lifted, [*scope.body, Return(value)]))
        if not scope.captured:
            return Atom(fresh)
        return Lambda(named, call(fresh, *(Atom(text) for text in lifted)))


def _claimed(equation: Any) -> tuple[Callable[[int], View], Claim]:
    """Return views of an equation, for each spelling of its literals, and the claim to prove."""
    indices = itertools.count()
    numbers = [None if is_literal(atom) else next(indices) for atom in equation.invars]

    def view_of(variant: int) -> View:
        return View(
            equation.primitive,
            equation.params,
            tuple(
                _literal(atom, variant) if number is None else Slot(number)
                for atom, number in zip(equation.invars, numbers, strict=True)
            ),
            tuple(atom.aval for atom in equation.invars),
            tuple(var.aval for var in equation.outvars),
            tuple(atom.val if is_literal(atom) else None for atom in equation.invars),
        )

    inputs = [_Binder(atom.aval) for atom in equation.invars if not is_literal(atom)]
    substitute = iter(inputs)
    stand_ins = [atom if is_literal(atom) else next(substitute) for atom in equation.invars]
    return view_of, Claim([equation.replace(invars=stand_ins)], inputs, equation.outvars)


@dataclass(eq=False, slots=True)
class _Binder:
    """Stands for an operand, so that an operand which is used twice has two."""

    aval: Any


def equation_key(equation: Any) -> Any:
    """Return a key that is equal for equal equations, or unique if it cannot be hashed."""
    return _key(equation) or id(equation)


def _key(equation: Any) -> Any:
    """Return a key that determines how an equation is spelled, or None if it cannot be hashed."""
    primitive, params = equation.primitive, equation.params
    told: Any = tuple(params.items())
    if primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        told = (program_key(opened(params["call_jaxpr"])), rule_identity.rules_key(params))
        if told[0] is None:
            return None
        told = (*told, params["num_consts"], params["symbolic_zeros"])
    key = (primitive, told, tuple(map(_operand_key, equation.invars)), equation.ctx)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _operand_key(atom: Any) -> Any:
    if not is_literal(atom):
        return atom.aval
    value = atom.val
    if type(value) is float and value and not math.isnan(value):  # -0.0 is equal to 0.0
        return (value, float, atom.aval)
    return (value_token(value), atom.aval)


def _user_name(var: Any, given: dict[int, str]) -> str:
    return var.name if isinstance(var, Returned) else given.get(id(var), "_")


def _primitive(equation: Any) -> str:
    """Return the name of the computation; for a high-level primitive, that of its class."""
    name = str(equation.primitive.name)
    return (
        hi_primitives.class_and_params(equation.params)[0].lower()
        if name == "call_hi_primitive"
        else name
    )


def _called(equation: Any) -> str | None:
    """Return a name for the result of a jitted call, after the function, or None."""
    name = equation.params.get("name") if equation.primitive.name in ("jit", "pjit") else None
    return identifier(str(name).strip("_"), "out") + "_out" if name else None


def _pattern(results: Any, targets: list[str]) -> str | Sequence_:
    """Return the left-hand side of an assignment."""
    if isinstance(results, int):
        return targets[results]

    def nested(part: Any) -> Expr:
        if isinstance(part, int):
            return Atom(targets[part])
        if part is None:
            return Atom("_")
        return tuple_(nested(inner) for inner in part)

    made = nested(results)
    assert isinstance(made, Sequence_)
    return made


def _shape(aval: Any) -> str:
    short = getattr(aval, "str_short", None)
    return str(short(short_dtypes=True)) if short is not None else str(aval)


def argument_bases(program: Program, fallback: str | Sequence[str] = "x") -> list[str]:
    """Return base names for a program's inputs: the user's names, if JAX knows them.

    `fallback` is for the others: one name for each, or names for all.
    """
    info = getattr(program.jaxpr, "debug_info", None)
    names = getattr(info, "arg_names", None) if info is not None else None
    count = len(program.jaxpr.invars)
    others = [fallback] * count if isinstance(fallback, str) else list(fallback)
    if names is None or len(names) != count:
        return others
    pairs = zip(names, others, strict=True)
    return [of_path(str(name or ""), other) if name else other for name, other in pairs]


def passed_as(operands: Sequence[Expr]) -> list[str]:
    """Return base names for parameters without known names: those of the values passed."""
    return [without_number(e.text) if _is_name(e) else "x" for e in operands]  # type: ignore[union-attr]


def slices_of(operands: Sequence[Expr]) -> list[str]:
    """Return base names for slices of the values that a loop iterates over."""
    counted = {"iota": "i", "numbers": "i"}
    bases = [
        base if _is_name(e) else "" for e, base in zip(operands, passed_as(operands), strict=True)
    ]
    return [counted.get(base, f"{base}_i") if base else "x" for base in bases]


def _is_name(expr: Expr) -> bool:
    return isinstance(expr, Atom) and is_identifier(expr.text) and not expr.text.startswith("_")


_TRANSFORMATIONS = re.compile(r"\w+\(|[)/]")
"""The parts of a scope's text other than the user's names."""


def sequence(results: list[Expr]) -> Expr:
    """Return a single result, or a tuple."""
    return results[0] if len(results) == 1 else tuple_(results)


def nested_results(count: int) -> Any:
    """Return the tree of `sequence`'s results."""
    return 0 if count == 1 else tuple(range(count))


__all__ = [
    "ABSORBS",
    "PRETTY_STRUCTURES",
    "STRUCTURES",
    "Call",
    "NotTheSame",
    "Placeholder",
    "Proved",
    "Remark",
    "Scope",
    "Unsourceable",
    "Writer",
    "argument_bases",
    "equation_key",
    "nested_results",
    "opened",
    "passed_as",
    "scalar",
    "sequence",
    "slices_of",
]
