"""What equal runs of equations become: steps, which look like equations.

So runs of steps are found in the same way as runs of equations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import is_literal

SHORTEST_CALL = 6
"""The minimum number of equations of a helper function.

A choice: with fewer, a `def`, its `return` and a call are as long as the equations; with more,
layers of a few equations are written out as often as they are called.
"""

CALL: Final = "call of a helper"
ADDED: Final = "sum of what may be nothing"
LOOP: Final = "loop over helpers"

StepKind = Literal["call of a helper", "sum of what may be nothing", "loop over helpers"]


Place = tuple[int, int]
"""The position of a step in a run, and of one of its results."""


class Operand(Protocol):
    """A variable, a literal, or what stands for one."""

    @property
    def aval(self) -> object: ...


class Item(Protocol):
    """An item of a run: an equation, a step, or what stands for a missing sum."""

    @property
    def invars(self) -> Sequence[Operand]: ...
    @property
    def outvars(self) -> Sequence[object]: ...
    @property
    def effects(self) -> AbstractSet[object]: ...


@dataclass(frozen=True, slots=True)
class _Named:
    name: str


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


@dataclass(frozen=True, slots=True)
class _Nothing:
    """Stands for the absent operand of an optional sum."""

    aval: _Function = _Function()


NOTHING = _Nothing()


@dataclass(eq=False, slots=True)
class Missing:
    """Stands for a sum that a run does not have, because there is nothing to add."""

    invars: list[Any]
    outvars: list[object]
    effects: frozenset[object] = frozenset()


@dataclass(eq=False, slots=True)
class FoldedStep:
    """Consecutive equations as one, with the interface of an equation that `Scope` uses."""

    kind: StepKind
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

    @property
    def primitive(self) -> _Named:
        return _Named(self.kind)

    @property
    def params(self) -> dict[str, object]:
        return {}


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
