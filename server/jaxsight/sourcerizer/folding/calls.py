"""Finds equal runs of equations: calls of the same function, and iterations of an unrolled loop.

Each run is replaced with one `Step`, which looks like an equation, so runs of steps are found in
the same way. Nothing is written here and no equation moves, so the program stays the same whatever
is found; `rules.folded` writes the steps.

* A `Family` is a helper function: runs of consecutive equations that one function of the user's
  created, equal except for their operands. It takes the outside values that they read and returns
  the values that are read outside.
* If the runs of one family read values of another one's runs, as the backward pass of a layer reads
  its forward pass, the former is written inside the latter, which returns it: it sees everything
  there, like the function that `jax.vjp` returns.
* A `Loop` is a tandem repeat: consecutive runs of steps, each of which may read results of the
  previous one.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxsight.interpreters.compat import rule_identity
from jaxsight.interpreters.compat.locations import Caller, callers
from jaxsight.interpreters.compat.staging import (
    is_dropped,
    is_jaxpr,
    is_literal,
    new_variable,
    opened,
)
from jaxsight.interpreters.same.tokens import value_token
from jaxsight.sourcerizer.compat.sources import is_backward
from jaxsight.sourcerizer.text.names import identifier

SHORTEST_CALL = 6
"""The minimum number of equations of a helper function."""

LEAST_SAVED = 16
"""The minimum number of equations that a loop must save."""

_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Functions that Python creates for comprehensions inside a function of the user's."""

CALL = "call of a helper"
ADDED = "sum of what may be nothing"
LOOP = "loop over helpers"

_OURS = re.compile(r"[/\\]jaxsight[/\\](sourcerizer|interpreters|tracer)[/\\]")


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
    """Stands for an equation that a run does not have, because nothing reads its results."""

    invars: list[Any]
    outvars: list[Any]
    effects: frozenset[Any] = frozenset()


@dataclass(eq=False, slots=True)
class Step:
    """Consecutive equations as one, with the interface of an equation that `Scope` uses."""

    kind: str
    family: Any
    index: int
    invars: list[Any]
    outvars: list[Any]
    members: list[Any]
    effects: frozenset[Any]
    source_info: Any
    ctx: Any = None
    bases: tuple[str, ...] = ()
    """Base names for the results that the user has no names for."""

    @property
    def primitive(self) -> _Named:
        return _Named(self.kind)

    @property
    def params(self) -> dict[str, Any]:
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
    outputs: list[tuple[int, int]] = field(default_factory=list)
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
    handles: dict[tuple[int, int], Returned] = field(default_factory=dict)
    """The functions that it returns, by positions: that of the helper in `returned`, of the run."""

    def variable(self, run: int, place: tuple[int, int]) -> Any:
        step, result = place
        return self.runs[run][step].outvars[result]


@dataclass(eq=False, slots=True)
class Loop:
    """A Python loop; each of its variables is a tuple with one value for each iteration."""

    runs: list[list[Any]]
    carried: list[tuple[Any, tuple[int, int]]]
    """The carried values: the initial value, and the place in an iteration that computes it."""
    taken: list[Any]
    """For each carried value, its variable in the first iteration."""
    varying: list[tuple[Any, ...]]
    """The operands that differ between iterations: variables or literals."""
    collected: list[tuple[int, int]]
    """The results that are read after the loop, of other iterations than the last."""
    finals: list[tuple[int, int]]
    """The results that are read after the loop, of the last iteration only, and not carried."""


Describe = Callable[[Any], bool]
"""Returns whether a variable has the same value everywhere in the module, as constants do."""


def folded(equations: Sequence[Any], outputs: Sequence[Any], known: dict[Any, int]) -> list[Any]:
    """Return the equations with steps in place of runs of them.

    Args:
        equations: those on which results depend, in order.
        outputs: the program's results.
        known: a cache of numbers for equal equations, shared between calls.
    """
    if len(equations) < 2 * SHORTEST_CALL:
        return list(equations)
    chains = {id(equation): _chain(equation) for equation in equations}
    items = _with_calls(list(equations), outputs, known, chains)
    items = _with_iterations(items, outputs, known, chains)
    return _with_loops(items, outputs, known)


# Calls of the user's functions


def _with_calls(
    items: list[Any],
    outputs: Sequence[Any],
    known: dict[Any, int],
    chains: dict[Any, list[Caller]],
) -> list[Any]:
    ranks: dict[tuple[str, str], int] = {}
    for chain in chains.values():
        for depth, caller in enumerate(chain):
            ranks[caller[:2]] = max(ranks.get(caller[:2], 0), depth)
    for rank in range(max(ranks.values(), default=0), 0, -1):
        alike: dict[tuple[int, ...], list[tuple[int, int, str]]] = defaultdict(list)
        tokens = [token_of(item, known) for item in items]
        depths = [_depth(chains[id(item)], ranks, rank) for item in items]
        for name, start, stop in _called(items, chains, depths):
            backward = is_backward(items[start])
            for first, last in _periods(items, tokens, start, stop, backward=backward):
                if last - first > 1 and _size(items[first:last]) >= SHORTEST_CALL:
                    alike[tuple(tokens[first:last])].append((first, last, name))
        made: list[Placed] = []
        for segments in alike.values():
            places = [(first, last) for first, last, _ in segments]
            made.extend(_agreeing(items, places, segments[0][2]))
        if not made:
            continue
        made.sort(key=lambda pair: pair[1][0])
        _nest([family for family, _ in made])
        _complete(items, made, itertools.chain.from_iterable(alike.values()), known)
        if others := _apart(items, made, outputs):
            made = sorted(others, key=lambda pair: pair[1][0])
            for family, _ in made:
                family.inside, family.partners = None, []
                family.returned.clear()
            _nest([family for family, _ in made])
        for _, places in made:
            for first, _ in places:
                chain = chains[id(items[first])]
                chains["step", id(items[first])] = chain[: depths[first]]
        items = _replaced(items, made, outputs)
        for item in items:
            if isinstance(item, Step) and id(item) not in chains:
                first_of = _present(item.family.runs[item.index])[0]
                chains[id(item)] = chains["step", id(first_of)]
    return items


Placed = tuple[Family, list[tuple[int, int]]]
"""A family, and the start and stop positions of its runs."""


def _apart(items: list[Any], made: Sequence[Placed], outputs: Sequence[Any]) -> list[Placed]:
    """Return the families split by which values are read outside; empty if none needs a split."""
    readers = _readers(items, outputs)
    where = _whereabouts([family for family, _ in made])
    divided: list[Placed] = []
    for family, places in made:
        by_outputs: dict[Hashable, list[int]] = defaultdict(list)
        for number in range(len(family.runs)):
            inner, results = _outputs_of(family, [number], readers, where)
            by_outputs[frozenset((*inner, *results))].append(number)
        if family.inside is not None or len(by_outputs) == 1:
            divided.append((family, places))
            continue
        for numbers in by_outputs.values():
            if len(numbers) > 1:
                runs = [family.runs[number] for number in numbers]
                own = Family(family.name, runs, _inputs(runs), optional=family.optional)
                divided.append((own, [places[number] for number in numbers]))
    return divided if len(divided) != len(made) or any(
        one is not other for (one, _), (other, _) in zip(divided, made, strict=True)
    ) else []  # fmt: skip


def _whereabouts(families: Iterable[Family]) -> dict[int, tuple[Family, int]]:
    """Return the family and run of each item, by the item's id."""
    return {
        id(item): (family, number)
        for family in families
        for number, run in enumerate(family.runs)
        for item in run
    }


def _depth(chain: Sequence[Caller], ranks: Mapping[tuple[str, str], int], rank: int) -> int:
    """Return the position of a rank's innermost function in a chain of calls, or 0."""
    for depth in range(len(chain) - 1, 0, -1):
        if ranks[chain[depth][:2]] == rank:
            return depth
    return 0


def _chain(item: Any) -> list[Caller]:
    if isinstance(item, Step):
        return []
    chain = callers(item)
    ours = [index for index, caller in enumerate(chain) if _OURS.search(caller[1])]
    chain = chain[ours[-1] + 1 :] if ours else chain
    return [caller for caller in chain if not caller[0].endswith(_COMPREHENSIONS)]


def _called(
    items: Sequence[Any], chains: Mapping[int, list[Caller]], depths: Sequence[int]
) -> Iterator[tuple[str, int, int]]:
    """Yield the runs of items that one call created: its function's name, start and stop."""

    def key(position: int) -> tuple[Hashable, ...] | None:
        depth = depths[position]
        if not depth:
            return None
        chain = chains[id(items[position])]
        return (tuple(chain[:depth]), chain[depth][:2], is_backward(items[position]))

    for call, group in itertools.groupby(range(len(items)), key):
        if call is not None:
            positions = list(group)
            first = positions[0]
            caller = chains[id(items[first])][depths[first]]
            yield _name_of(caller[0], bool(call[2])), first, positions[-1] + 1


def _name_of(qualified: str, backward: bool) -> str:
    """Return a helper's name: that of the function, or of the class whose instance is called."""
    words = [word for word in qualified.split(".") if word != "<locals>"]
    name = words[-1]
    if name.startswith("__") and len(words) > 1:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words[-2]).lower()
    name = identifier(name, "helper")
    return f"{name}_backward" if backward else name


def _periods(
    items: Sequence[Any], tokens: Sequence[int], start: int, stop: int, *, backward: bool
) -> Iterator[tuple[int, int]]:
    """Yield the spans of the repeats in a run, such as calls in a loop, or that of the whole run.

    The first or last repeat may differ and is then a span of its own: the first layer of a network
    has no derivative by its input, so a `backward` run begins with a complete repeat.
    """
    size = stop - start
    for period in range(1, size // 2 + 1):
        first, last = stop, start
        while first - period > start and tokens[first - period - 1] == tokens[first - 1]:
            first -= 1
        while last + period < stop and tokens[last] == tokens[last + period]:
            last += 1
        enough = max(period, size // 2 - period)
        from_end = stop - first >= enough and not (backward and last - start >= enough)
        if from_end and _size(items[stop - period : stop]) >= SHORTEST_CALL:
            count = (stop - first) // period + 1
            begin = stop - count * period
            if begin > start:
                yield start, begin
            yield from ((at, at + period) for at in range(begin, stop, period))
            return
        if last - start >= enough and _size(items[start : start + period]) >= SHORTEST_CALL:
            end = start + ((last - start) // period + 1) * period
            yield from ((at, at + period) for at in range(start, end, period))
            if end < stop:
                yield end, stop
            return
    yield start, stop


def _agreeing(
    items: Sequence[Any], places: Sequence[tuple[int, int]], name: str
) -> Iterator[tuple[Family, list[tuple[int, int]]]]:
    """Yield families of equal-looking runs that also have the same flow of values inside."""
    by_flow: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for first, last in places:
        by_flow[flow_of(items[first:last])].append((first, last))
    for own in by_flow.values():
        if len(own) > 1:
            runs = [list(items[first:last]) for first, last in own]
            yield Family(name, runs, _inputs(runs)), own


def _present(run: Sequence[Any]) -> list[Any]:
    return [item for item in run if not isinstance(item, Missing)]


def _complete(
    items: Sequence[Any],
    made: Sequence[Placed],
    segments: Iterable[tuple[int, int, str]],
    known: dict[Any, int],
) -> None:
    """Add runs to families that lack some equations because nothing reads their results."""
    taken = {place for _, places in made for place in places}
    left = [segment for segment in segments if segment[:2] not in taken]
    for family, places in made:
        for first, last, name in left:
            if name != family.name or (first, last) in taken:
                continue
            run = _completed(family, items[first:last], made, known)
            if run is not None:
                taken.add((first, last))
                places.append((first, last))
                family.runs.append(run)
                family.inputs = _inputs(family.runs)


def _completed(
    family: Family, segment: Sequence[Any], made: Sequence[Placed], known: dict[Any, int]
) -> list[Any] | None:
    """Return equations as a run of a family with `Missing` ones, or None if they do not fit."""
    full, flow = family.runs[0], flow_of(family.runs[0])
    own = {id(var) for item in segment for var in item.outvars}
    held: dict[tuple[int, int], int] = {}
    """The ids of the variables that correspond to results of the full run."""
    sums: dict[tuple[int, int], int] = {}
    optional: set[int] = set()
    run: list[Any] = []
    for place, item in enumerate(full):
        at = len(_present(run))
        other = segment[at] if at < len(segment) else None
        if other is not None and _corresponds(item, other, flow[place], held, own, known):
            run.append(other)
            held.update({(place, i): id(var) for i, var in enumerate(other.outvars)})
            optional |= {sums[source] for source in flow[place] if source in sums}
            continue
        run.append(Missing(list(item.invars), list(map(_like, item.outvars))))
        inside = [source for source in flow[place] if source is not None]
        if item.primitive.name == "add_any" and len(inside) == 1 and inside[0] in held:
            held[place, 0] = held[inside[0]]  # the sum has no other operand
            sums[place, 0] = place
    if len(_present(run)) < len(segment) or 2 * len(segment) < len(full):
        return None
    partner = _partner_of(family, segment)
    for place, item in enumerate(run):
        if not isinstance(item, Missing):
            continue
        for slot, source in enumerate(flow[place]):
            if source is not None or is_literal(item.invars[slot]):
                continue
            value = NOTHING if place in optional else _value_of(family, run, place, slot, partner)
            if value is None:
                return None
            item.invars[slot] = value
    if partner is not None:
        family.partners.append(partner)
    elif family.inside is not None:
        return None
    family.optional |= optional
    return run


def _like(var: Any) -> Any:
    """Return a new variable of the same type that nothing reads."""
    return Returned("_") if isinstance(var, Returned) else new_variable(var.aval)


def _corresponds(
    item: Any,
    other: Any,
    flow: Sequence[tuple[int, int] | None],
    held: Mapping[tuple[int, int], int],
    own: set[int],
    known: dict[Any, int],
) -> bool:
    """Return whether an item is the corresponding one of a full run, with the same operands."""
    if token_of(item, known) != token_of(other, known):
        return False
    return all(
        held.get(source) == id(atom) if source is not None else id(atom) not in own
        for source, atom in zip(flow, other.invars, strict=True)
    )


def _partner_of(family: Family, segment: Sequence[Any]) -> int | None:
    """Return the run of the containing helper that a run reads from, or None."""
    if family.inside is None:
        return None
    where = {
        id(var): number
        for number, run in enumerate(family.inside.runs)
        for item in run
        for var in item.outvars
    }
    read = {
        id(atom): where[id(atom)] for item in segment for atom in item.invars if id(atom) in where
    }
    number = _run_read(family.inside, read)
    return None if number in family.partners else number


def _value_of(
    family: Family, run: Sequence[Any], place: int, slot: int, partner: int | None
) -> Any:
    """Return the value that a run would read at a place, by analogy with the other runs.

    Return None if it does not follow from them.
    """
    row = [other[place].invars[slot] for other in family.runs]
    if all(var is row[0] for var in row):
        return row[0]
    for there, item in enumerate(run):
        for index, atom in enumerate(item.invars if not isinstance(item, Missing) else ()):
            if all(
                other[there].invars[index] is var
                for other, var in zip(family.runs, row, strict=True)
            ):
                return atom
    if partner is None or family.inside is None:
        return None
    outer = family.inside
    for outer_row in outer.inputs:
        if all(outer_row[n] is var for n, var in zip(family.partners, row, strict=True)):
            return outer_row[partner]
    for there, item in enumerate(outer.runs[0]):
        for result in range(len(item.outvars)):
            if all(
                outer.variable(n, (there, result)) is var
                for n, var in zip(family.partners, row, strict=True)
            ):
                return outer.variable(partner, (there, result))
    return None


def flow_of(run: Sequence[Any]) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """Return, for each operand, the step and result of the run that computes it, or None."""
    made = {
        id(var): (place, result)
        for place, item in enumerate(run)
        for result, var in enumerate(item.outvars)
    }
    return tuple(tuple(made.get(id(atom)) for atom in item.invars) for item in run)


def _inputs(runs: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    own = {id(var) for run in runs[:1] for item in run for var in item.outvars}
    inputs: dict[tuple[int, ...], tuple[Any, ...]] = {}
    for place, item in enumerate(runs[0]):
        for slot, atom in enumerate(item.invars):
            if not is_literal(atom) and id(atom) not in own:
                row = tuple(run[place].invars[slot] for run in runs)
                inputs.setdefault(tuple(map(id, row)), row)
    return list(inputs.values())


def _nest(families: Sequence[Family]) -> None:
    """Put families inside those whose values they read, run by run."""
    made: dict[int, tuple[Family, int, tuple[int, int]]] = {}
    for family in families:
        for number, run in enumerate(family.runs):
            for place, item in enumerate(run):
                for result, var in enumerate(item.outvars):
                    made[id(var)] = family, number, (place, result)
    for family in families:
        for partner in families:
            if partner is family or partner.inside is not None or family.returned:
                continue
            partners = _partners(family, partner, made)
            if partners is not None:
                family.inside, family.partners = partner, partners
                partner.returned.append(family)
                break


_LEAST_READ = 2
"""The minimum number of values that a helper must read of another to be written inside it."""


def _partners(
    family: Family,
    partner: Family,
    made: Mapping[int, tuple[Family, int, tuple[int, int]]],
) -> list[int] | None:
    """Return, for each run of a family, the run of `partner` that it reads from.

    Return None if the family cannot be written inside `partner`.
    """
    places: list[set[tuple[int, int]]] = []
    partners: list[int] = []
    for number in range(len(family.runs)):
        sources = {
            id(row[number]): source
            for row in family.inputs
            if (source := made.get(id(row[number]))) is not None and source[0] is partner
        }
        own = _run_read(partner, {key: source[1] for key, source in sources.items()})
        if own is None:
            return None
        partners.append(own)
        places.append({source[2] for source in sources.values() if source[1] == own})
    if len(set(partners)) < len(partners) or any(each != places[0] for each in places):
        return None
    return partners if len(places[0]) >= _LEAST_READ else None


def _run_read(family: Family, read: Mapping[int, int]) -> int | None:
    """Return the run of a family that computes or reads all of some values, or None.

    `read` maps the ids of the values to their runs.
    """
    for number in set(read.values()):
        taken = {id(row[number]) for row in family.inputs}
        if all(run == number or key in taken for key, run in read.items()):
            return number
    return None


def _replaced(
    items: list[Any],
    made: Sequence[Placed],
    outputs: Sequence[Any],
) -> list[Any]:
    """Return the items with a step in place of each run."""
    starts = {own[0]: (family, number, own[1]) for family, places in made
              for number, own in enumerate(places)}  # fmt: skip
    readers = _readers(items, outputs)
    where = _whereabouts(family for family, _ in made)
    for family, _ in made:
        inner, results = _outputs_of(family, range(len(family.runs)), readers, where)
        family.outputs = [*inner, *results]
        family.handed_on = len(inner)
        for which, nested in enumerate(family.returned):
            for number in nested.partners:
                family.handles[which, number] = Returned(nested.name)
    done: list[Any] = []
    position = 0
    while position < len(items):
        if position not in starts:
            done.append(items[position])
            position += 1
            continue
        family, number, position = starts[position]
        done.append(_step(family, number))
    return done


def _step(family: Family, number: int) -> Step:
    run = family.runs[number]
    seen = _captured(family)
    invars = [row[number] for index, row in enumerate(family.inputs) if index not in seen]
    outvars = [family.variable(number, place) for place in family.outputs]
    for which in range(len(family.returned)):
        handle = family.handles.get((which, number))
        outvars.append(handle if handle is not None else Returned("_"))
    if family.inside is not None:
        which = family.inside.returned.index(family)
        invars.insert(0, family.inside.handles[which, family.partners[number]])
    members = [inner for item in run for inner in _members(item)]
    effects = frozenset(effect for item in run for effect in item.effects)
    source = _present(run)[0].source_info
    step = Step(CALL, family, number, invars, outvars, members, effects, source)
    if family.inside is not None:
        results = len(family.outputs) - family.handed_on
        step.bases = ("ct",) * family.handed_on + ("grad",) * results
    return step


def optional_sum(equation: Any, nothing: int) -> Step:
    """Return a step for a sum of which one operand, at position `nothing`, may be absent."""
    return Step(
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


def _size(items: Sequence[Any]) -> int:
    """Return the number of equations in items."""
    return sum(len(_members(item)) for item in items)


def _members(item: Any) -> list[Any]:
    if isinstance(item, Missing):
        return []
    return item.members if isinstance(item, Step) else [item]


def _captured(family: Family) -> set[int]:
    """Return the inputs of a nested family that the containing helper's variables provide."""
    return set(captures(family))


def captures(family: Family) -> dict[int, Any]:
    """Return the variables of the containing helper's first run that inputs of a family stand for.

    The keys are the inputs' positions.
    """
    outer = family.inside
    if outer is None:
        return {}
    made = {
        id(var): (number, (place, result))
        for number, run in enumerate(outer.runs)
        for place, item in enumerate(run)
        for result, var in enumerate(item.outvars)
    }
    found: dict[int, Any] = {}
    for index, row in enumerate(family.inputs):
        source = made.get(id(row[0]))
        if source is not None and source[0] == family.partners[0]:
            found[index] = outer.variable(0, source[1])
            continue
        for outer_row in outer.inputs:
            if all(
                outer_row[partner] is var for partner, var in zip(family.partners, row, strict=True)
            ):
                found[index] = outer_row[0]
                break
    return found


def _readers(items: Sequence[Any], outputs: Iterable[Any]) -> dict[int, list[Any]]:
    """Return the items that read each variable, by its id; None stands for a program result."""
    readers: dict[int, list[Any]] = defaultdict(list)
    for item in items:
        for atom in item.invars:
            if not is_literal(atom):
                readers[id(atom)].append(item)
    for atom in outputs:
        if not is_literal(atom):
            readers[id(atom)].append(None)
    return readers


Places = tuple[tuple[int, int], ...]
"""Positions of steps in a run, each with the position of a result."""


def _outputs_of(
    family: Family,
    numbers: Iterable[int],
    readers: Mapping[int, list[Any]],
    where: Mapping[int, tuple[Family, int]],
) -> tuple[Places, Places]:
    """Return the values of some runs that are read outside, in two groups.

    The first group is read by other steps; the second is only returned by the program.
    """
    inner: list[tuple[int, int]] = []
    results: list[tuple[int, int]] = []
    chosen = list(numbers)
    for place, item in enumerate(family.runs[0]):
        for result in range(len(item.outvars)):
            outside: list[Any] = []
            for number in chosen:
                for reader in readers.get(id(family.runs[number][place].outvars[result]), ()):
                    at = where.get(id(reader)) if reader is not None else None
                    if at is None or not _is_within(at, family, number):
                        outside.append(reader)
            if any(reader is not None for reader in outside):
                inner.append((place, result))
            elif outside:
                results.append((place, result))
    return tuple(inner), tuple(results)


def _is_within(at: tuple[Family, int], family: Family, number: int) -> bool:
    """Return whether an item is part of a run, or of a run nested inside it."""
    other, run = at
    if other is family:
        return run == number
    return other.inside is family and other.partners[run] == number


# Iterations of unrolled loops


def _with_iterations(
    items: list[Any],
    outputs: Sequence[Any],
    known: dict[Any, int],
    chains: Mapping[Any, list[Caller]],
) -> list[Any]:
    """Return the items with helper calls in place of iterations that another loop reverses.

    The backward pass over layers is such a loop. Other iterations stay, and are written as loops.
    """
    tokens = np.array([token_of(item, known) for item in items], np.int64)
    weights = np.array([len(_members(item)) for item in items])
    made: list[Placed] = []
    taken: list[range] = []
    for _, start, period, length in _tandem_runs(tokens, weights):
        region = range(start, start + period + length)
        begin = _first_of_iteration(items, chains, start, period)
        count = (region.stop - begin) // period
        overlaps = any(region.start < own.stop and own.start < region.stop for own in taken)
        if overlaps or count < 2 or weights[begin : begin + period].sum() < _SHORTEST_ITERATION:
            continue
        taken.append(region)
        name = "step_backward" if is_backward(items[begin]) else "step"
        places = [(begin + k * period, begin + (k + 1) * period) for k in range(count)]
        made.extend(_agreeing(items, places, name))
    made.sort(key=lambda pair: pair[1][0])
    _nest([family for family, _ in made])
    made = [pair for pair in made if pair[0].inside is not None or pair[0].returned]
    for family, places in made:
        after = places[-1][1]
        size = len(family.runs[0])
        free = min([place[0] for _, own in made for place in own if place[0] >= after],
                   default=len(items))  # fmt: skip
        for last in range(min(after + size, free), after + size // 2, -1):
            count = len(family.runs)
            _complete(items, [(family, places)], [(after, last, family.name)], known)
            if len(family.runs) > count:
                break
    if not made or _apart(items, made, outputs):
        return items
    return _replaced(items, made, outputs)


_SHORTEST_ITERATION = 2 * SHORTEST_CALL
"""The minimum number of equations of an iteration that becomes a helper function."""


def _first_of_iteration(
    items: Sequence[Any], chains: Mapping[Any, list[Caller]], start: int, period: int
) -> int:
    """Return the start of an iteration: where the line numbers in the loop's function restart.

    In a backward pass, the lines run upwards.
    """
    own = [chains[id(item)] for item in items[start : start + period]]
    depth = 0
    for callers_at in zip(*own, strict=False):
        if any(caller[:2] != callers_at[0][:2] for caller in callers_at):
            break
        depth += 1
    if not depth:
        return start
    numbers = [chain[depth - 1][2][0] for chain in own]
    sign = 1 if is_backward(items[start]) else -1
    jumps = [sign * (after - numbers[at - 1]) for at, after in enumerate(numbers)]
    return start + jumps.index(max(jumps))


def _with_loops(items: list[Any], outputs: Sequence[Any], known: dict[Any, int]) -> list[Any]:
    """Return the items with loops in place of tandem repeats, those that save the most first."""
    while True:
        tokens = np.array([token_of(item, known, exact=False) for item in items], np.int64)
        readers = _readers(items, outputs)
        weights = np.array([len(_members(item)) for item in items])
        for first, period, count in _tandems(tokens, weights):
            loop = _loop(items, first, period, count, readers)
            if loop is not None:
                start, made = loop
                stop = start + period * len(made.runs)
                step = _loop_step(made)
                items = [*items[:start], step, *items[stop:]]
                break
        else:
            return items


_MOST_TRIED = 24
"""The number of tandem repeats that are examined, those that save the most."""


def _tandems(tokens: Any, weights: Any) -> list[tuple[int, int, int]]:
    """Return tandem repeats as start, length and count, with every phase; the best first."""
    made: list[tuple[int, int, int]] = []
    for _, start, period, length in _tandem_runs(tokens, weights):
        count = length // period + 1
        slack = length + period - count * period
        made.extend((start + phase, period, count) for phase in range(slack + 1))
        if count > 2:
            made.extend((start + phase, period, count - 1) for phase in range(slack + 1, period))
    return made


def _tandem_runs(tokens: Any, weights: Any) -> list[tuple[int, int, int, int]]:
    """Return tandem repeats, the best first.

    Each is the number of equations that it saves, its start, its period, and the length of the
    repeats after the first one.
    """
    found: list[tuple[int, int, int, int]] = []
    size = len(tokens)
    total = np.concatenate([[0], np.cumsum(weights)])
    for period in range(1, size // 2 + 1):
        equal = tokens[period:] == tokens[:-period]
        if not equal.any():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[0], equal.astype(np.int8), [0]])))
        for start, stop in edges.reshape(-1, 2):
            length = int(stop - start)
            count = length // period + 1
            if count < 2:
                continue
            saved = int(total[start + (count - 1) * period] - total[start])
            if saved >= LEAST_SAVED:
                found.append((saved, int(start), period, length))
    found.sort(key=lambda one: (-one[0], one[2]))
    return found[:_MOST_TRIED]


def _loop(
    items: Sequence[Any],
    first: int,
    period: int,
    count: int,
    readers: Mapping[int, list[Any]],
) -> tuple[int, Loop] | None:
    """Return a tandem repeat as a loop, with its start.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    runs = [list(items[first + k * period : first + (k + 1) * period]) for k in range(count)]
    made = {
        id(var): (number, (place, result))
        for number, run in enumerate(runs)
        for place, item in enumerate(run)
        for result, var in enumerate(item.outvars)
    }
    carried: dict[tuple[int, tuple[int, int]], tuple[Any, tuple[int, int]]] = {}
    varying: dict[tuple[Hashable, ...], tuple[Any, ...]] = {}
    for place, item in enumerate(runs[0]):
        for slot in range(len(item.invars)):
            row = tuple(run[place].invars[slot] for run in runs)
            sources = [None if is_literal(atom) else made.get(id(atom)) for atom in row]
            if not any(sources):
                keys = tuple(_atom_key(atom) for atom in row)
                if len(set(keys)) > 1:
                    varying.setdefault(keys, row)
                continue
            if sources[0] is None:
                expected = [(number - 1, sources[1][1]) if sources[1] else None
                            for number in range(1, count)]  # fmt: skip
                if sources[1:] != expected or is_literal(row[0]):
                    return None
                carried.setdefault((id(row[0]), sources[1][1]), (row[0], sources[1][1]))  # type: ignore[index]
            elif any(
                source is None or source != (number, sources[0][1])
                for number, source in enumerate(sources)
            ):
                return None
    inside = [set(map(id, run)) for run in runs]
    sent = {place for _, place in carried.values()}
    collected: list[tuple[int, int]] = []
    finals: list[tuple[int, int]] = []
    for place, item in enumerate(runs[0]):
        for result in range(len(item.outvars)):
            outside = []
            for number, run in enumerate(runs):
                following = inside[number + 1] if number + 1 < count else set()
                own = inside[number] | (following if (place, result) in sent else set())
                outside.append(
                    any(
                        reader is None or id(reader) not in own
                        for reader in readers.get(id(run[place].outvars[result]), ())
                    )
                )
            if any(outside[:-1]):
                collected.append((place, result))
            elif outside[-1] and (place, result) not in sent:
                finals.append((place, result))
    if len(carried) > _MOST_CARRIED:
        return None
    return first, Loop(
        runs,
        list(carried.values()),
        [init for init, _ in carried.values()],
        list(varying.values()),
        collected,
        finals,
    )


_MOST_CARRIED = 4
"""The maximum number of carried values; more indicate that iterations were cut at a wrong place."""


def _atom_key(atom: Any) -> Hashable:
    if is_literal(atom):
        return ("literal", value_token(atom.val), atom.aval)
    return id(atom)


def _loop_step(loop: Loop) -> Step:
    members = [inner for run in loop.runs for item in run for inner in _members(item)]
    own = {id(var) for run in loop.runs for item in run for var in item.outvars}
    invars: dict[int, Any] = {
        id(atom): atom
        for run in loop.runs
        for item in run
        for atom in item.invars
        if not is_literal(atom) and id(atom) not in own
    }
    last = loop.runs[-1]
    outvars = [last[place].outvars[result] for _, (place, result) in loop.carried]
    outvars += [last[place].outvars[result] for place, result in loop.finals]
    for run in loop.runs:
        outvars += [run[place].outvars[result] for place, result in loop.collected]
    unique = list({id(var): var for var in outvars}.values())
    effects = frozenset(effect for item in members for effect in item.effects)
    source = loop.runs[0][0].source_info
    return Step(LOOP, loop, 0, list(invars.values()), unique, members, effects, source)


# Keys of equations


def token_of(item: Any, known: dict[Any, int], *, exact: bool = True) -> int:
    """Return a number that is equal for items that differ only in their operands.

    Literals must be equal too, if `exact`.
    """
    if isinstance(item, Step):
        return known.setdefault(("step", item.kind, id(item.family)), len(known))
    key = ("at", id(item), exact)
    number = known.get(key)
    if number is None:
        look = _look(item, exact)
        number = known[key] = known.setdefault(look, len(known))
        known["kept", id(item)] = item  # kept alive, so that its id is not reused
    return number


def _look(equation: Any, exact: bool) -> Hashable:
    operands = tuple(
        (_atom_key(atom) if exact else ("literal", atom.aval)) if is_literal(atom) else atom.aval
        for atom in equation.invars
    )
    params = equation.params
    if equation.primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        told: Hashable = (
            _frozen(params["call_jaxpr"]),
            rule_identity.rules_key(params),
            params["num_consts"],
            params["symbolic_zeros"],
        )
    else:
        told = tuple((name, _frozen(given)) for name, given in params.items())
    results = tuple((var.aval, is_dropped(var)) for var in equation.outvars)
    look = (equation.primitive, told, operands, results, equation.ctx)
    try:
        hash(look)
    except TypeError:
        return ("alone", id(equation))
    return look


def _frozen(value: Any) -> Hashable:
    """Return a key that differs for different parameters; it may also differ for equal ones."""
    if is_jaxpr(value):
        return _program(value)
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(given)) for name, given in value.items())
    if isinstance(value, (bool, int, float, complex)):
        return (type(value), repr(value))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value  # type: ignore[no-any-return]


def _program(value: Any) -> Hashable:
    program = opened(value)
    jaxpr = program.jaxpr
    if program.consts or jaxpr.constvars:
        return id(value)
    number = {id(var): index for index, var in enumerate(jaxpr.invars)}
    body: list[Hashable] = []
    for equation in jaxpr.eqns:
        operands = tuple(None if is_literal(a) else number.get(id(a)) for a in equation.invars)
        body.append((_look(equation, True), operands))
        for var in equation.outvars:
            number[id(var)] = len(number)
    results = tuple(_atom_key(a) if is_literal(a) else number.get(id(a)) for a in jaxpr.outvars)
    return (tuple(var.aval for var in jaxpr.invars), tuple(body), results)
