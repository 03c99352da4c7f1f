"""What equal runs of equations become: steps, which look like equations.

So runs of steps are found in the same way as runs of equations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from jaxsight_source.compat import derivative_rules
from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.compat.staging import is_dropped, is_jaxpr, is_literal, opened
from jaxsight_source.jaxprs.same.values import value_token

SHORTEST_CALL = 6
"""The minimum number of equations of a helper function.

A choice: with fewer, a `def`, its `return` and a call are as long as the equations; with more,
layers of a few equations are written out as often as they are called.
"""

CALL: Final = "call of a helper"
ADDED: Final = "sum of what may be nothing"
LOOP: Final = "loop over helpers"


Place = tuple[int, int]
"""The position of a step in a run, and of one of its results."""


Item: TypeAlias = Any
"""An item of a run: an equation, a step, or what stands for a missing sum."""


@dataclass(frozen=True, slots=True)
class _Function:
    """The type of a function that a helper returns."""

    weak_type: bool = False

    def str_short(self, short_dtypes: bool = False) -> str:
        return "function"


@dataclass(eq=False, slots=True)
class Returned:
    """Stands for a function that a helper returns, in place of a variable."""

    name: str
    aval: _Function = _Function()


NOTHING = Returned("")
"""Stands for the absent operand of an optional sum."""


@dataclass(eq=False, slots=True)
class Missing:
    """Stands for a sum that a run does not have, because there is nothing to add."""

    invars: list[Any]
    outvars: list[object]
    effects: frozenset[object] = frozenset()


@dataclass(eq=False, slots=True)
class FoldedStep:
    """Consecutive equations as one, with the interface of an equation that `Scope` uses."""

    name: str
    family: Any
    index: int
    invars: list[Any]
    outvars: list[Any]
    members: list[Any]
    effects: frozenset[object]
    source_info: object
    ctx: object = None
    bases: tuple[str, ...] = ()
    """Base names for the results that the user has no names for."""
    params: dict[str, object] = field(default_factory=dict)

    @property
    def primitive(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.name)


@dataclass(eq=False, slots=True)
class Family:
    """A helper function; `runs` are the equations and steps of its calls.

    The first run is the one that is written.
    """

    name: str
    runs: list[list[Any]]
    inputs: list[tuple[Any, ...]]
    """The values read from outside: one per run, in order of first use in the first run."""
    outputs: list[Place] = field(default_factory=list)
    """The values read outside: the position of the step, and of its result."""
    handed_on: int = 0
    """How many of these, at the start, other steps read; the rest are only program results."""
    inside: Family | None = None
    """The helper that contains and returns this one."""
    returned: list[Family] = field(default_factory=list)
    """The helpers that this one contains."""
    partners: list[int] = field(default_factory=list)
    """For each run, the run of `inside` that it reads from."""
    optional: set[int] = field(default_factory=set)
    """The steps that are sums which some runs do not have: these runs add `NOTHING`."""
    handles: dict[Place, Returned] = field(default_factory=dict)
    """The functions that it returns, by positions: that of the helper in `returned`, of the run."""

    def variable(self, run: int, position: Place) -> object:
        step, output = position
        return self.runs[run][step].outvars[output]


@dataclass(eq=False, slots=True)
class FoldedLoop:
    """A Python loop; each of its variables is a tuple with one value for each iteration."""

    runs: list[list[Any]]
    carried: list[tuple[object, Place]]
    """The carried values: the initial value, and the place in an iteration that computes it."""
    first_values: list[Any]
    """For each carried value, its variable in the first iteration."""
    varying: list[tuple[Any, ...]]
    """The operands that differ between iterations: variables or literals."""
    collected: list[Place]
    """The results that are read after the loop, of other iterations than the last."""
    finals: list[Place]
    """The results that are read after the loop, of the last iteration only, and not carried."""


def optional_sum(equation: Equation, nothing: int) -> FoldedStep:
    """Return a step for a sum of which one operand, at position `nothing`, may be absent."""
    return FoldedStep(
        ADDED,
        equation,
        nothing,
        list(equation.invars),
        list(equation.outvars),
        [equation],
        frozenset(),
        equation.source_info,
        bases=("added",),
    )


def size_of(equations: Sequence[object]) -> int:
    """Return the number of equations, with those of steps."""
    return sum(len(members_of(equation)) for equation in equations)


def members_of(equation: object) -> list[Any]:
    if isinstance(equation, Missing):
        return []
    return equation.members if isinstance(equation, FoldedStep) else [equation]


def present(run: Sequence[object]) -> list[Any]:
    return [equation for equation in run if not isinstance(equation, Missing)]


def readers_of(equations: Sequence[Any], outputs: Iterable[Any]) -> dict[int, list[Any]]:
    """Return the equations that read each variable, by its id; None stands for a program result."""
    readers: dict[int, list[Any]] = defaultdict(list)
    for equation in equations:
        for atom in equation.invars:
            if not is_literal(atom):
                readers[id(atom)].append(equation)
    for atom in outputs:
        if not is_literal(atom):
            readers[id(atom)].append(None)
    return readers


def places_of(run: Sequence[Item]) -> dict[int, Place]:
    """Return the step and result of a run that compute each variable, by the variable's id."""
    return {
        id(var): (position, output)
        for position, equation in enumerate(run)
        for output, var in enumerate(equation.outvars)
    }


def sources_of(runs: Sequence[Sequence[Item]]) -> dict[int, tuple[int, Place]]:
    """Return the run, and the place in it, that compute each variable, by the variable's id."""
    return {
        key: (number, place)
        for number, run in enumerate(runs)
        for key, place in places_of(run).items()
    }


def flow_of(run: Sequence[Item]) -> tuple[tuple[Place | None, ...], ...]:
    """Return, for each operand, the step and result of the run that computes it, or None."""
    sources = places_of(run)
    return tuple(tuple(sources.get(id(atom)) for atom in equation.invars) for equation in run)


def inputs_of(runs: Sequence[Sequence[Item]]) -> list[tuple[Any, ...]]:
    own = {id(var) for run in runs[:1] for equation in run for var in equation.outvars}
    inputs: dict[tuple[int, ...], tuple[Any, ...]] = {}
    for position, equation in enumerate(runs[0]):
        for slot, atom in enumerate(equation.invars):
            if not is_literal(atom) and id(atom) not in own:
                row = tuple(run[position].invars[slot] for run in runs)
                inputs.setdefault(tuple(map(id, row)), row)
    return list(inputs.values())


class EquationNumbers:
    """The numbers of equations, which are equal for equal ones; they grow as equations are met.

    Objects that many equations share, such as types and the programs of jitted functions, are
    examined once.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._exact: dict[int, int] = {}
        """The numbers of equations with their literals, by the equation's id."""
        self._loose: dict[int, int] = {}
        """The same without the values of literals."""
        self._parts: dict[Hashable, int] = {}
        """The numbers of parts of equations, by their contents."""
        self._part_of: dict[int, int] = {}
        """The same by the part's id."""
        self._kept: list[object] = []
        """The objects whose ids are keys, kept alive so that no other object has their ids."""

    def of(self, equation: Any, *, exact: bool = True) -> int:
        """Return a number that is equal for equations that differ only in their operands.

        Literals must be equal too, if `exact`.
        """
        if isinstance(equation, FoldedStep):
            return self._number(("step", equation.name, id(equation.family)))
        known = self._exact if exact else self._loose
        number = known.get(id(equation))
        if number is None:
            self._kept.append(equation)
            if exact or any(map(is_literal, equation.invars)):
                number = self._number(self._look(equation, exact))
            else:
                number = self.of(equation)
            known[id(equation)] = number
        return number

    def _number(self, look: Hashable) -> int:
        return self._numbers.setdefault(look, len(self._numbers))

    def _look(self, equation: Equation, exact: bool) -> Hashable:
        try:
            return (
                equation.primitive,
                self._parameters(equation.primitive.name, equation.params),
                tuple([self._operand(atom, exact) for atom in equation.invars]),
                tuple([(self._part(var.aval), is_dropped(var)) for var in equation.outvars]),
                self._part(equation.ctx),
            )
        except _Unhashable:
            return ("alone", id(equation))

    def _operand(self, atom: Any, exact: bool) -> Hashable:
        if not is_literal(atom):
            return self._part(atom.aval)
        return ("literal", value_token(atom.val) if exact else None, self._part(atom.aval))

    def _parameters(self, name: str, params: Params) -> Hashable:
        if name in ("custom_jvp_call", "custom_vjp_call"):
            key = derivative_rules.rules_key(params)
            called = self._frozen(params["call_jaxpr"])
            return self._interned((called, key, params["num_consts"], params["symbolic_zeros"]))
        return tuple([(parameter, self._frozen(value)) for parameter, value in params.items()])

    def _part(self, value: object) -> int:
        """Return the number of a type or a context."""
        part = self._part_of.get(id(value))
        return self._kept_part(value, value) if part is None else part

    def _frozen(self, value: object) -> int:
        """Return a number that differs for different parameters; it may differ for equal ones."""
        part = self._part_of.get(id(value))
        return self._kept_part(value, self._contents(value)) if part is None else part

    def _kept_part(self, value: object, key: object) -> int:
        part = self._part_of[id(value)] = self._interned(key)
        self._kept.append(value)
        return part

    def _interned(self, key: object) -> int:
        try:
            return self._parts.setdefault(key, len(self._parts))
        except TypeError:
            raise _Unhashable from None

    def _contents(self, value: object) -> Hashable:
        if is_jaxpr(value):
            return self._program(value)
        if isinstance(value, (tuple, list)):
            return (type(value), *map(self._frozen, value))
        if isinstance(value, dict):
            items = [(name, self._frozen(part)) for name, part in value.items()]
            return (dict, *items)
        if isinstance(value, (bool, int, float, complex)):
            return (type(value), repr(value))
        try:
            hash(value)
        except TypeError:
            return ("id", id(value))
        return value

    def _program(self, value: object) -> Hashable:
        program = opened(value)
        jaxpr = program.jaxpr
        if program.consts or jaxpr.constvars:
            return ("id", id(value))
        number = {id(var): index for index, var in enumerate(jaxpr.invars)}
        body: list[Hashable] = []
        for equation in jaxpr.eqns:
            operands = [None if is_literal(a) else number.get(id(a)) for a in equation.invars]
            body.append((self._look(equation, True), *operands))
            for var in equation.outvars:
                number[id(var)] = len(number)
        results = [
            self._operand(a, True) if is_literal(a) else number.get(id(a)) for a in jaxpr.outvars
        ]
        return (tuple([self._part(var.aval) for var in jaxpr.invars]), *body, *results)


class _Unhashable(Exception):
    """A part of an equation cannot be hashed, so no other equation is known to be equal."""


def atom_key(atom: Any) -> Hashable:
    if is_literal(atom):
        return ("literal", value_token(atom.val), atom.aval)
    return id(atom)
