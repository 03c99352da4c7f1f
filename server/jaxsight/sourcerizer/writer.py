"""Walks programs and writes them as functions of a module.

`Writer` holds what belongs to the module: its functions, constants, names, what was proved before.
`Scope` is one function that is being written. Rules for single equations give candidate expressions
(`view`); rules for equations that contain programs (`STRUCTURES`) write the functions around them
and give a call.
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
from jaxsight.interpreters.compat import parameters as read
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
from jaxsight.interpreters.same import Comparison, live, needed_by, read_by_live, value_token
from jaxsight.sourcerizer import constants as arrays
from jaxsight.sourcerizer import remembered, spelling
from jaxsight.sourcerizer.assignments import Fits, is_of_derivative, user_names
from jaxsight.sourcerizer.compat.sources import is_backward
from jaxsight.sourcerizer.contexts import contexts
from jaxsight.sourcerizer.contexts import place as under
from jaxsight.sourcerizer.exprs import (
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
from jaxsight.sourcerizer.folding import NOTHING, Returned, folded
from jaxsight.sourcerizer.layout import flat
from jaxsight.sourcerizer.module import (
    Assign,
    Effect,
    Function,
    Remark,
    Return,
    Statement,
    lines,
    renamed,
)
from jaxsight.sourcerizer.names import (
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
from jaxsight.sourcerizer.options import Options
from jaxsight.sourcerizer.paths import Path
from jaxsight.sourcerizer.prover import Claim, Prover
from jaxsight.sourcerizer.repeats import Listed, Repeat, Repeats, listed, with_repeats
from jaxsight.sourcerizer.rules.bound import by_name, by_package, by_primitive
from jaxsight.sourcerizer.view import LAX, PRETTY, View
from jaxsight.sourcerizer.windows import Found, Window, candidates, found, program_key

_log = logging.getLogger(__name__)

DEEPEST = 12
"""Levels of functions within functions; deeper ones move to the top of the module and take what
they capture as arguments. (Python itself allows a hundred levels of indentation.)
"""


MANY = 6
"""Values that are passed several times under a name for all of them."""

MOST_LINES = 3
"""Lines of text for each equation of a program, at most."""

LEAST_REFUSED = 3000
"""Lines that are written for any program, however few its equations are."""

LONGEST_RULES = 8
"""Equations written for each one of a program, those of rules included, from which on its text is
too long whatever it looks like.
"""


class Unsourceable(Exception):
    """An equation that no public text stands for, or whose text could not be proved."""

    def __init__(self, primitive: str, why: str, place: str = "") -> None:
        self.primitive = primitive
        self.why = why
        self.place = place
        super().__init__(f"cannot write {primitive}{' at ' + place if place else ''}: {why}")


class TooLong(Exception):
    """A text of many times more lines than the program has equations."""

    def __init__(self, written: str, equations: int, derivatives: str) -> None:
        advice = {"exact": 'derivatives="first"', "first": 'derivatives="primal"'}.get(derivatives)
        why = f", mostly rules of derivatives; help: write it with {advice}" if advice else ""
        super().__init__(f"{written} for {equations:,} equations{why}")


class NotTheSame(Unsourceable):
    """A text that was made and is not the same program, or does not give the same when it is
    run.
    """


@dataclass(slots=True)
class Placeholder:
    """Something that no text can hold, which the caller of the written function passes in."""

    name: str
    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class Proved:
    """An expression with slots, and how its results are nested (a pytree of result numbers)."""

    expr: Expr
    results: Any
    bound: bool = False
    """Whether only `bind` says it."""


WRITTEN = Proved(NONE, None)
"""What a rule gives that wrote statements of its own: there is nothing to assign."""

NameOf = Callable[[Any], "str | None"]
"""What the user called a variable; None where that is not known."""

Structure = Callable[["Scope", Any], "Proved | None"]
"""A rule for an equation that contains programs.

The expression's slots are filled already; None leaves the equation to others.
"""

STRUCTURES: Rules[Structure] = Rules()

PRETTY_STRUCTURES: Rules[Structure] = Rules()
"""The same in the pretty style, tried first. What they write is compared as a whole at the end."""

Absorb = Callable[[Sequence[Any], int, Callable[[Any], int]], int]
"""Looks at equations from a position on and says how many belong together there (1: only this one),
given how often each variable is used. The structure rule of the last of them gets them all.
"""

ABSORBS: Rules[Absorb] = Rules()


@dataclass(slots=True)
class Writer:
    """A module in the making."""

    options: Options
    names: ModuleNames = field(default_factory=ModuleNames)
    prover: Prover = field(default_factory=Prover)
    functions: list[Statement] = field(default_factory=list)
    constants: list[Statement] = field(default_factory=list)
    packed: list[tuple[str, arrays.Packed]] = field(default_factory=list)
    made: list[Statement] = field(default_factory=list)
    """Constants that are made of packed or stored ones."""
    stored: dict[str, Any] = field(default_factory=dict)
    """Arrays for the companion file, or for arguments, by name."""
    placeholders: dict[int, Placeholder] = field(default_factory=dict)
    _functions: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    bound: list[str] = field(default_factory=list)
    """Primitives that only `bind` could write, once for each equation."""
    equations: int = 0
    most: int | None = None
    """Equations that are written at most, those of rules included."""
    size: int = 0
    """Equations of the program."""
    name_of: NameOf | None = None
    """What the user called a variable, where someone watched the program being made."""
    fits: Fits | None = None
    """Which types the values of the user's expressions had, where someone watched."""
    derivative: bool = False
    """It is differentiated, or a part of it is."""
    backward: bool = False
    """What is being written computes cotangents: nothing that the user named."""
    _spelled: dict[Any, Proved] = field(default_factory=dict)
    _idioms: dict[Any, Proved | None] = field(default_factory=dict)
    _shared: dict[Any, tuple[Any, str, int]] = field(default_factory=dict)
    """With the least number of rules around for which each function is written far enough."""
    _building: list[str] = field(default_factory=list)
    _rules: int = 0
    _cut: int = 0
    """How many rules were not written, because too many are around them."""
    _inlined: int = 0
    _customs: dict[Any, list[tuple[Program, str, int]]] = field(default_factory=dict)
    inside: list[tuple[Any, str]] = field(default_factory=list)
    """Functions with rules that are being written where they are called: by what they are known,
    and their names."""
    _texts: dict[str, str] = field(default_factory=dict)
    folds: dict[int, Any] = field(default_factory=dict)
    """How helper functions take what they read, by the family."""
    paths: dict[int, Path] = field(default_factory=dict)
    """How parts of the whole function's arguments are read, by the variable."""
    sizes: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """Elements of lists, by how they are read."""
    handles: dict[str, str] = field(default_factory=dict)
    """What the elements of a list of functions are called, by the list's name."""
    given: dict[int, str] = field(default_factory=dict)
    """The user's names, by the variable."""
    known: dict[Any, int] = field(default_factory=dict)
    """Numbers of equations that look the same."""
    programs: list[Listed] = field(default_factory=list)
    """What was written, as long as it is not known what of it repeats."""
    listing: Listed | None = None
    """The one of them that is being written."""
    repeats: Repeats | None = None
    """What becomes functions because it stands at several places."""
    repeating: list[Repeat] = field(default_factory=list)
    """Those of these functions that are being written."""
    _constants: dict[Any, tuple[Any, Expr]] = field(default_factory=dict)

    @contextmanager
    def rule(self) -> Iterator[None]:
        """Around the writing of a custom rule.

        Raises:
            read.Refused: so many rules are around that this one is not written.
        """
        if self._rules >= self.options.orders:
            self._cut += 1
            count = self.options.orders
            orders = "1 order" if count == 1 else f"{count} orders"
            raise read.Refused(f"rules are written for {orders} of derivatives")
        self._rules += 1
        try:
            yield
        finally:
            self._rules -= 1

    def user_names(self, equations: Sequence[Any], kept: Sequence[Any]) -> dict[int, Sequence[str]]:
        """What the user called the results of equations, by position among those that are
        `kept`.
        """
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
        """A constant of the program: a number, or the name of an array of the module."""
        known = self._constants.get(id(value))
        if known is not None:
            return known[1]
        if is_ref(value):
            return self.placeholder(value, "ref", "is an array that changes")
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
        """As `constant`, for one that is converted: JAX folds conversions of numbers, and keeps
        those of arrays.
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
        if value.shape == () and not read.is_key(getattr(value, "aval", value)):
            return scalar(value, weak=bool(getattr(value, "weak_type", False)))
        if not hasattr(value, "nbytes"):
            value = np.asarray(value)  # what JAX 0.8 makes of NumPy's arrays
        short = arrays.spelled(value)
        in_argument = short is None and self.options.constants == "argument"
        name = self.names.fresh("constant" if in_argument else "_CONSTANT")
        if short is not None:
            self.constants.append(Assign(name, short))
        elif in_argument:
            self.stored[name] = value
        elif read.is_key(getattr(value, "aval", value)):
            data = self.constant(jax.random.key_data(value))
            impl = spelling.text(read.key_impl(value.dtype))
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
        """A value at the top of the module that is no constant of the program."""
        if name not in self.names.module:
            self.names.keep(name)
            self.constants.append(Assign(name, parsed(text)))
        return Atom(name)

    def named(self, value: Any, base: str, expr: Expr) -> Expr:
        """A name at the top of the module for something hashable that `expr` makes."""
        known = self._constants.get(("named", value))
        if known is None:
            known = (value, Atom(self.names.fresh(base)))
            self.constants.append(Assign(flat(known[1]), expr))
            self._constants["named", value] = known
        return known[1]

    def placeholder(self, value: Any, base: str, why: str) -> Expr:
        """A name for something that the caller passes in."""
        known = self.placeholders.get(id(value))
        if known is None:
            known = Placeholder(self.names.fresh(base), value, why)
            self.placeholders[id(value)] = known
        return Atom(known.name)

    def bound_length(self) -> None:
        """Raises `TooLong` for a text that grows far beyond its program."""
        if self.most is not None and self.equations > self.most:
            written = f"over {self.most:,} equations to be written"
            raise TooLong(written, self.size, self.options.derivatives)

    def function_of(self, equation: Any) -> Callable[..., Any]:
        """A function that does what an equation does; of equal equations the same."""
        key = equation_key(equation)
        if key not in self._functions:
            self._functions[key] = functools.partial(as_it_was, equation)
        return self._functions[key]

    def rules_of(self, equation: Any, base: str, why: str) -> Expr:
        """A decorator, which the caller passes in, that gives a function the rules of an
        equation's.
        """
        key = ("rules", equation_key(equation))
        if key not in self._functions:
            self._functions[key] = functools.partial(ruled, equation)
        where = f" at {at}" if (at := place(equation)) else ""
        said = f"gives `{base}` the derivative rules that it has{where} ({why})"
        return self.placeholder(self._functions[key], f"{base}_rules", said)

    def structure(self, tree: Any, why: str) -> Expr:
        """A name for the structure of a result that no text can build; equal ones have one name."""
        for known in self.placeholders.values():
            if isinstance(known.value, type(tree)) and known.value == tree:
                return Atom(known.name)
        return self.placeholder(tree, "structure", why)

    def shared(
        self, key: Any, keep: Any, base: str, build: Callable[[str], list[Statement]]
    ) -> Expr:
        """The name of a function at the top of the module, written once for `key`, and once for
        equal text.

        `build` is given the name and writes the function, with others that belong to it, whose
        names start with the same.
        """
        known = self._shared.get(key)
        if known is not None and known[2] <= self._rules:
            self._cut += known[2] > 0
            return Atom(known[1])
        cut = self._cut
        stand_in = f"{STAND_IN}{len(self._building)}__"
        self._building.append(stand_in)
        start, first = len(self.functions), len(self.programs)
        around, self.inside = self.inside, []  # the top of the module does not see them
        try:
            statements = build(stand_in)
        except read.Outlived:
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
        """As `shared`, for a function whose rules may call itself; known by its rule and its
        program.
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
        """A function at the top of the module."""
        return Scope(self, None)

    def prove(self, view_of: Callable[[int], View], claim: Claim, key: Any) -> Proved:
        """The best expression that is proved to be an equation. Raises `Unsourceable`."""
        made = self._prove(view_of, claim, self._sources())
        text = flat(made.expr)
        made = Proved(made.expr, made.results, bound=".bind(" in text)
        remembered.keep(self._key_anywhere(key), made, text)
        if key is not None:
            self._spelled[key] = made
        return made

    def proved(self, key: Any) -> Proved | None:
        """What was proved before to be such an equation, for this text or for another."""
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
            else f"{tried} spellings tried, none is it" + (f" ({whys[0]})" if whys else ""),
        )

    def prove_window(self, windows: Sequence[Window], key: Any) -> Expr | None:
        """What several equations are written as together, with slots; None where nothing is proved
        to be them.
        """
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
        """A public call for an equation that contains programs, in the module's style; None where
        nothing is proved to be it.
        """
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
"""Spellings of literals: as Python numbers, as numbers with a dtype, as arrays."""


def scalar(value: Any, weak: bool) -> Expr:
    """A scalar so that its dtype and weak type are kept wherever it is passed."""
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
    """How an array lies on a mesh of several devices, which its type says; None for others."""
    sharding = getattr(value, "sharding", None)
    is_on_mesh = isinstance(sharding, jax.sharding.NamedSharding) and sharding.mesh.axis_names
    return sharding if is_on_mesh else None


def _converted(program: Program) -> set[int]:
    """The ids of the variables that a program converts: JAX folds that where they are numbers."""
    return {
        id(equation.invars[0])
        for equation in program.jaxpr.eqns
        if equation.primitive.name == "convert_element_type"
    }


def _array(atom: Any) -> Any:
    """A literal as an array of its type.

    Raises `Unwritable` for a weak type that is not Python's.
    """
    value = np.asarray(atom.val).astype(atom.aval.dtype)
    if not getattr(atom.aval, "weak_type", False):
        return jnp.asarray(value)
    made = jnp.asarray(value.item())
    if made.dtype != atom.aval.dtype:
        raise spelling.Unwritable(atom.val, "its weak type is not that of a Python number")
    return made


class Scope:
    """One function that is being written: its statements, names and variables."""

    def __init__(self, writer: Writer, around: Scope | None) -> None:
        self.writer = writer
        self.around = around
        self.names: Names = writer.names.function(around.names if around else None)
        self.body: list[Statement] = []
        self.depth: int = around.depth + 1 if around else 0
        self.uses: dict[int, int] = {}
        """How often each variable is read, by its id."""
        self.captured: dict[str, None] = {}
        """Names of functions around that this one reads, in order."""
        self.paths: dict[int, Path] = {}
        """How variables that are parts of something are read."""
        self._environment: Environment[tuple[Scope, Expr]] = Environment(
            around._environment if around else None
        )

    def write(self, var: Any, expr: Expr) -> None:
        """Lets `var` stand for `expr`, which must be a name, or mean the same wherever it is
        read.
        """
        self._environment.write(var, (self, expr))

    def alias(self, var: Any, atom: Any) -> None:
        """Lets `var` stand for what `atom` stands for, here or in a function around."""
        if is_literal(atom):
            value = np.asarray(atom.val).astype(atom.aval.dtype)
            self._environment.write(
                var, (self, scalar(value, bool(getattr(var.aval, "weak_type", False))))
            )
        else:
            with contextlib.suppress(KeyError):  # nothing was written that only dead code reads
                self._environment.write(var, self._environment.read(atom))

    def capture(self, program: Program, captured: Sequence[Any]) -> None:
        """Lets a program's first inputs stand for atoms of a function around."""
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
        """How a variable is read that is part of something."""
        scope: Scope | None = self
        while scope is not None:
            if id(var) in scope.paths:
                return scope.paths[id(var)]
            scope = scope.around
        return None

    def stand(self, var: Any, path: Path) -> None:
        """Lets `var` stand for what is read so."""
        if not path.steps:
            self.paths.pop(id(var), None)
            self.write(var, Atom(path.root))
            return
        self.paths[id(var)] = path
        name = self.names.fresh(path.name)
        self.write(var, Atom(name))
        self.body.append(Assign(name, path.expr))

    def operand(self, atom: Any, weak: bool | None = None) -> Expr:
        """What is passed for `atom`; literals keep their dtype, and are weakly typed where `weak`
        says so.
        """
        if not is_literal(atom):
            return self.read(atom)
        dtype = getattr(atom.aval, "dtype", None)
        value = np.asarray(atom.val)
        weak = bool(getattr(atom.aval, "weak_type", False)) if weak is None else weak
        return scalar(value if dtype is None else value.astype(dtype), weak)

    def operands(self, atoms: Sequence[Any], binders: Sequence[Any]) -> list[Expr]:
        """Arguments for the inputs of an inner program."""
        return [
            self.operand(atom, bool(getattr(binder.aval, "weak_type", False)))
            for atom, binder in zip(atoms, binders, strict=True)
        ]

    def inner(self) -> Scope:
        """A function within this one."""
        return Scope(self.writer, self)

    def parameters(self, variables: Sequence[Any], bases: Sequence[str] | None = None) -> list[str]:
        """Names for the inputs of this function."""
        names = []
        for index, var in enumerate(variables):
            base = bases[index] if bases and index < len(bases) else "x"
            name = self.names.fresh(base)
            self.write(var, Atom(name))
            names.append(name)
        return names

    def take_apart(self, names: Sequence[str], whole: str) -> None:
        """Several parameters that come as one."""
        self.body.append(Assign(tuple_(map(Atom, names)), Atom(whole)))

    def several(self, values: Sequence[Expr], base: str) -> list[Expr]:
        """Values that are passed more than once, as one tuple where there are many of them."""
        if len(values) < MANY:
            return list(values)
        name = self.names.fresh(base)
        self.body.append(Assign(name, tuple_(values)))
        return [Star(Atom(name))]

    def program(self, program: Program) -> list[Expr]:
        """Writes the equations of a program whose inputs are named, and gives its results."""
        if program.consts:
            self._constants(program)
        self.equations(program.jaxpr.eqns, program.jaxpr.outvars)
        return [self.operand(atom) for atom in program.jaxpr.outvars]

    def _constants(self, program: Program) -> None:
        """Writes the constants of a program that are read."""
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
        """What a rule holds of the programs around the function that it belongs to.

        Raises:
            read.Outlived: it is of none that this function stands in.
        """
        try:
            return self.read(variable(tracer))
        except KeyError:
            raise read.Outlived("it holds values of a trace that is over") from None

    def equations(
        self, equations: Sequence[Any], outputs: Sequence[Any], *, named: bool = True
    ) -> None:
        """Writes equations.

        `named` says that the user's names of their results are not known yet.
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
        """The items with calls of what stands at several places; takes note of them where that is
        not known yet.
        """
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
        """The expression of a variable that is a number, or has one name in all of the module."""
        try:
            _, expr = self._environment.read(var)
        except KeyError:
            return None
        if isinstance(expr, Atom) and is_identifier(expr.text):
            return expr if expr.text in self.writer.names.module else None
        return expr

    def _place(self, start: int, equation: Any) -> None:
        """Under what the equation was made under, if that is unusual."""
        try:
            managers = contexts(equation.ctx)
        except spelling.Unwritable as error:
            raise Unsourceable(equation.primitive.name, str(error), place(equation)) from error
        names = scope_of(equation) if self.writer.options.scopes else ""
        if _TRANSFORMATIONS.sub("", names):
            managers.insert(0, call("jax.named_scope", spelling.text(names)))
        under(self.body, start, managers)

    def _windows(self, kept: Sequence[Any], uses: dict[int, int]) -> dict[int, Found]:
        """Equations that are written together, by the position of the first; few in the plain
        style.
        """
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
        """What a result is called that the user has no name for."""
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
        """A public call for an equation that contains programs, in the style of the module."""
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
        """What no text can say, the caller passes in: a function, called `base`, that does what the
        equation does.
        """
        name, operands = _primitive(equation), [self.operand(atom) for atom in equation.invars]
        given = ", ".join(str(_shape(atom.aval)) for atom in equation.invars)
        gives = ", ".join(str(_shape(var.aval)) for var in equation.outvars)
        where = f" at {at}" if (at := place(equation)) else ""
        why = (
            f"does what `{name}` does{where}, from {given or 'nothing'} to {gives or 'nothing'} "
            f"({reason})"
        )
        function = self.writer.function_of(equation)
        passed = self.writer.placeholder(function, base or suggested(name), " ".join(why.split()))
        return Proved(call(passed, *operands), nested_results(len(equation.outvars)))

    def _filled(self, proved: Proved, equation: Any) -> Proved:
        variables = [atom for atom in equation.invars if not is_literal(atom)]
        return Proved(self.fill(proved.expr, variables), proved.results)

    def fill(self, expr: Expr, variables: Sequence[Any]) -> Expr:
        """An expression about variables.

        Where all of these are numbers they are made arrays: Python would compute with them itself.
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
        """The name at the top of the module of what is written there."""
        return self.writer.named(flat(shared.value), shared.base, shared.value)

    def function(
        self,
        name: str,
        program: Program,
        captured: Sequence[Any],
        parameters: Callable[[Scope], tuple[str, ...]],
        results: Callable[[list[Expr]], Expr],
    ) -> Expr:
        """Writes an inner program as a function and gives an expression for it.

        `captured` are atoms here that the program's first inputs stand for; `parameters` names the
        others in the new scope.
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
    """What rules see of an equation, for each spelling of its literals, and what is to be proved of
    what they offer.
    """
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
    """Stands for an operand, so that one that is used twice has two."""

    aval: Any


def equation_key(equation: Any) -> Any:
    """What equal equations have in common; another for each that cannot be told."""
    return _key(equation) or id(equation)


def _key(equation: Any) -> Any:
    """What decides how an equation is spelled; None where that cannot be hashed."""
    primitive, params = equation.primitive, equation.params
    told: Any = tuple(params.items())
    if primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        told = (program_key(opened(params["call_jaxpr"])), read.rules_key(params))
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
    """The name of what is computed."""
    name = str(equation.primitive.name)
    return read.high(equation.params)[0].lower() if name == "call_hi_primitive" else name


def _called(equation: Any) -> str | None:
    """The result of a call is named after the function."""
    name = equation.params.get("name") if equation.primitive.name in ("jit", "pjit") else None
    return identifier(str(name).strip("_"), "out") + "_out" if name else None


def _pattern(results: Any, targets: list[str]) -> str | Sequence_:
    """What stands left of the `=`."""
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
    """Base names of a program's inputs: what the user called them, where JAX knows.

    `fallback` is for the others, for each or for all.
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
    """Base names for parameters that JAX has no names for: those of what is passed."""
    return [without_number(e.text) if _is_name(e) else "x" for e in operands]  # type: ignore[union-attr]


def slices_of(operands: Sequence[Expr]) -> list[str]:
    """Base names for slices of what a loop goes over."""
    counted = {"iota": "i", "numbers": "i"}
    bases = [
        base if _is_name(e) else "" for e, base in zip(operands, passed_as(operands), strict=True)
    ]
    return [counted.get(base, f"{base}_i") if base else "x" for base in bases]


def _is_name(expr: Expr) -> bool:
    return isinstance(expr, Atom) and is_identifier(expr.text) and not expr.text.startswith("_")


_TRANSFORMATIONS = re.compile(r"\w+\(|[)/]")
"""What a scope's text has besides the names that people gave."""


def sequence(results: list[Expr]) -> Expr:
    """A single result, or a tuple."""
    return results[0] if len(results) == 1 else tuple_(results)


def nested_results(count: int) -> Any:
    """How `sequence`'s results are nested."""
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
