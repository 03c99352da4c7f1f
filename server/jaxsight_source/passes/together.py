"""Writes values that are only passed on together under one name, as `first, *rest = f(x)`.

Works on the statements of one function. The computations and their order stay the same.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight_source.text.exprs import (
    Atom,
    Call,
    Each,
    Expr,
    Sequence_,
    Star,
    call,
    is_identifier,
    parts_of,
    tuple_,
    with_parts,
)
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import unused, without_number
from jaxsight_source.text.statements import Assign, Function, Return, Statement
from jaxsight_source.text.walks import (
    UNREAD,
    expressions,
    names_assigned,
    names_read,
    own_statements,
    rewritten,
    value_name,
)

FEWEST = 2
"""The minimum number of results of a call that get a common name: one has its own."""

FEWEST_PARTS = 3
"""The minimum number of parts of other values that get a common name: two fit on its line."""

_LOOPS = frozenset({"lax.scan", "lax.while_loop", "lax.fori_loop", "lax.cond", "lax.switch"})
"""JAX functions that return tuples if the functions passed to them do."""

_PLURALS = {"ct": "cts", "grad": "grads", "residual": "residuals"}


@dataclass(frozen=True, slots=True)
class _Passed:
    """Counts how often names are items of collections or calls, and follow one another there."""

    of: frozenset[str]
    parts: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    single: Counter[str] = field(default_factory=Counter)
    """How often each is the only item."""

    def note(self, expr: object) -> None:
        if isinstance(expr, (Call, Sequence_)):
            before = ""
            for part in expr.items:
                name = part.text if type(part) is Atom and part.text in self.of else ""
                if name:
                    self.parts[name] += 1
                    if before:
                        self.pairs[before, name] += 1
                    if len(expr.items) == 1:
                        self.single[name] += 1
                before = name
        for part in parts_of(expr):
            if type(part) is not Atom:
                self.note(part)


def starred(body: Sequence[Statement], used: set[str], *, mostly: bool = False) -> list[Statement]:
    """Return a function's statements, with one name for values that are only passed on together.

    Args:
        used: names that are in use; new ones are added.
        mostly: skip results most of which would keep their names.
    """
    own = [unpacking for unpacking in own_statements(body) if _is_taking_apart(unpacking)]
    if not own:
        return list(body)
    together = _together(body, names_assigned(own))
    runs: dict[str, tuple[list[str], Expr]] = {}
    changed: dict[int, Statement | None] = {}
    for statement in own:
        targets = statement.targets
        run = _longest(list(map(value_name, targets.items)), together)
        if len(targets.items) == 1 and together(flat(targets.items[0]), ""):
            run = [flat(targets.items[0])]
        if len(run) == len(targets.items) and isinstance(statement.value, Atom):
            changed[id(statement)] = None
            runs[run[0]] = run, statement.value
            continue
        if len(run) < (FEWEST_PARTS if isinstance(statement.value, Atom) else FEWEST) or (
            mostly and 2 * len(run) < len(targets.items)
        ):
            continue
        common = Atom(_fresh(_plural(run), used))
        if len(run) == len(targets.items):
            if not _gives_sequence(statement.value):
                continue
            changed[id(statement)] = dataclasses.replace(statement, targets=common.text)
        else:
            start = targets.items.index(Atom(run[0]))
            parts = (*targets.items[:start], Star(common), *targets.items[start + len(run) :])
            changed[id(statement)] = dataclasses.replace(statement, targets=tuple_(parts))
        runs[run[0]] = run, common
    if not changed:
        return list(body)
    return rewritten(body, lambda expr: _passing(expr, runs), changed=changed)


def _together(body: Sequence[Statement], names: Iterable[str]) -> Callable[[str, str], bool]:
    """Return a predicate on names: whether two of them are only read as consecutive items.

    For a single name, it returns whether that is only read as the only item.
    """
    reads, assigned = Counter(names_read(body)), Counter(names_assigned(body))
    passed = _Passed(frozenset(names))
    for expr in expressions(body):
        passed.note(expr)

    def together(name: str, after: str) -> bool:
        times = passed.pairs[name, after] if after else passed.single[name]
        return times > 0 and all(
            reads[part] == passed.parts[part] == times and assigned[part] <= 1
            for part in (name, after or name)
        )

    return together


def with_rest(function: Function, used: set[str]) -> Function:
    """Return a function with `*rest` for its last parameters if these are only passed on together.

    All calls of the function must use positional arguments only.
    """
    names = list(function.parameters)
    if len(names) < FEWEST_PARTS or not all(map(is_identifier, names)):
        return function
    together = _together(function.body, names)
    count = 1
    while count < len(names) and together(names[-1 - count], names[-count]):
        count += 1
    if count < FEWEST_PARTS:
        return function
    run = names[-count:]
    common = _fresh(_plural(run), used)
    runs: dict[str, tuple[list[str], Expr]] = {run[0]: (run, Atom(common))}
    body = rewritten(function.body, lambda expr: _passing(expr, runs))
    return dataclasses.replace(function, parameters=(*names[:-count], f"*{common}"), body=body)


def _is_taking_apart(statement: Statement) -> bool:
    """Return whether a statement unpacks a value into names that are not the user's."""
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets, Sequence_)
        and isinstance(statement.value, (Atom, Call, Sequence_))
        and not statement.user_named
        and not any(isinstance(part, Star) for part in statement.targets.items)
        and not (isinstance(statement.value, Atom) and statement.equations)
    )


def _longest(names: Sequence[str], together: Callable[[str, str], bool]) -> list[str]:
    """Return the longest run of names that go together; empty for a single name."""
    best: list[str] = []
    run: list[str] = []
    for name in names:
        if run and name and together(run[-1], name):
            run.append(name)
        else:
            run = [name] if name else []
        best = run if len(run) > len(best) else best
    return best if len(best) > 1 else []


def _gives_sequence(value: object) -> bool:
    """Return whether a value is known not to be an array, whose unpacking creates equations."""
    match value:
        case Call(Atom(path)):
            return "." not in path or path in _LOOPS
        case Sequence_():
            return True
        case _:
            return False


def _plural(run: Sequence[str]) -> str:
    bases = set(map(without_number, run))
    return _PLURALS.get(bases.pop(), "rest") if len(bases) == 1 else "rest"


def _fresh(base: str, used: set[str]) -> str:
    name = unused(base, used.__contains__)
    used.add(name)
    return name


def _passing(expr: object, runs: dict[str, tuple[list[str], Expr]]) -> Any:
    """Return an expression with `*rest` for each run of names."""

    def again(part: object) -> Any:
        return _passing(part, runs)

    match expr:
        case Call(function, items):
            return Call(again(function), _with_stars(tuple(map(again, items)), runs))
        case Each(inside, target, Sequence_("(", items)):
            values = _with_stars(items, runs)
            if len(values) == 1 and isinstance(values[0], Star):
                return Each(again(inside), target, values[0].value)
            return Each(again(inside), target, tuple_(values))
        case Sequence_(bracket, items):
            return Sequence_(bracket, _with_stars(tuple(map(again, items)), runs))
        case _:
            return with_parts(expr, tuple(map(again, parts_of(expr))))


def _with_stars(
    parts: tuple[object, ...], runs: dict[str, tuple[list[str], Expr]]
) -> tuple[Any, ...]:
    starred_parts: list[object] = []
    position = 0
    while position < len(parts):
        run, common = runs.get(value_name(parts[position]), ([], None))
        if run and [value_name(part) for part in parts[position : position + len(run)]] == run:
            starred_parts.append(Star(common))  # type: ignore[arg-type]
            position += len(run)
        else:
            starred_parts.append(parts[position])
            position += 1
    return tuple(starred_parts)


def returned_whole(body: Sequence[Statement]) -> list[Statement]:
    """Return a loop's result directly, as `return lax.scan(…)`, if all its parts are returned."""
    match list(body):
        case [
            *before,
            Assign(Sequence_("(", targets), Call(Atom(path)) as value, equations),
            Return(Sequence_("(", results), others),
        ] if (
            path in _LOOPS
            and targets == results
            and not any(target == Atom("_") for target in targets)
        ):
            return [*before, Return(value, [*equations, *others])]
        case kept:
            return kept


def returned(body: Sequence[Statement], functions: Collection[str]) -> list[Statement]:
    """Return the statements of a function that returns a whole tuple or list without unpacking it.

    Args:
        functions: the module's own functions, which return tuples.
    """
    match list(body):
        case [
            *before,
            Assign(str(name), Sequence_("[", (Each() as each,)), equations),
            Return(Sequence_("(", (Star(Atom(same)),)), others),
        ] if name == same:
            return [*before, Return(call("tuple", each), [*equations, *others])]
        case [*before, Return(Sequence_("(", (Star(Call(Atom(path)) as value),)), equations)] if (
            path in functions or path in _LOOPS
        ):
            return [*before, Return(value, equations)]
        case same:
            return same


def unread(body: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a function without names for unread results: `first, *_ = f(x)`."""
    counts = Counter(names_read(body))
    changed: dict[int, Statement | None] = {}
    for statement in own_statements(body):
        if not isinstance(statement, Assign) or not isinstance(statement.targets, Sequence_):
            continue
        targets = _read_alone(statement.targets, counts)
        if targets != statement.targets:
            changed[id(statement)] = dataclasses.replace(statement, targets=targets)
        if targets == Sequence_("(", (Star(UNREAD),)) and isinstance(statement.value, Atom):
            changed[id(statement)] = None
    return rewritten(body, changed=changed) if changed else list(body)


def _read_alone(targets: Sequence_, counts: Counter[str]) -> Sequence_:
    parts: list[Any] = []
    for part in targets.items:
        if isinstance(part, Sequence_):
            inside = _read_alone(part, counts)
            parts.append(UNREAD if all(map(_is_unread, inside.items)) else inside)
        elif isinstance(part, Atom):
            parts.append(part if counts[part.text] else UNREAD)
        else:
            parts.append(part)
    last = max((i for i, part in enumerate(parts) if not _is_unread(part)), default=-1)
    starred_before = any(isinstance(part, Star) for part in parts[: last + 1])
    if len(parts) - last > 2 and not starred_before:
        parts[last + 1 :] = [Star(UNREAD)]
    return Sequence_(targets.bracket, tuple(parts))


def _is_unread(target: object) -> bool:
    return target in (UNREAD, Star(UNREAD))
