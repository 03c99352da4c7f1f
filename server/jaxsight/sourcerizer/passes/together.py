"""Writes related values together, as `first, *rest = f(x)`, `*_` and `[g(x) for x in rest]`.

Works on the statements of one function. The computations and their order stay the same.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Call,
    Each,
    Expr,
    Lambda,
    Sequence_,
    Star,
    call,
    is_identifier,
    parts_of,
    tuple_,
    with_parts,
)
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.text.name_uses import names_assigned, names_read
from jaxsight.sourcerizer.text.names import without_number
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Return,
    Statement,
    With,
    lines,
)

FEWEST = 2
"""The minimum number of results of a call that get a common name."""

FEWEST_PARTS = 3
"""The minimum number of parts of other values that get a common name."""

FEWEST_STATEMENTS = 3
"""The minimum number of consecutive statements in a comprehension."""

FEWEST_ITEMS = 4
"""The minimum number of consecutive items in a comprehension."""

_SHORTER = 0.75
"""The maximum length of a comprehension, relative to the items that it replaces."""

_UNREAD = Atom("_")

_LOOPS = frozenset({"lax.scan", "lax.while_loop", "lax.fori_loop", "lax.cond", "lax.switch"})
"""JAX functions that return tuples if the functions passed to them do."""

_PLURALS = {"ct": "cts", "grad": "grads", "residual": "residuals"}


# Values that are only passed on together


@dataclass(frozen=True, slots=True)
class _Passed:
    """Counts how often names are items of collections or calls, and follow one another there."""

    of: frozenset[str]
    items: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    single: Counter[str] = field(default_factory=Counter)
    """How often each is the only item."""

    def note(self, expr: Any) -> None:
        if isinstance(expr, (Call, Sequence_)):
            before = ""
            for item in expr.items:
                name = item.text if type(item) is Atom and item.text in self.of else ""
                if name:
                    self.items[name] += 1
                    if before:
                        self.pairs[before, name] += 1
                    if len(expr.items) == 1:
                        self.single[name] += 1
                before = name
        for part in parts_of(expr):
            if type(part) is not Atom:
                self.note(part)


def starred(body: Sequence[Statement], taken: set[str], *, mostly: bool = False) -> list[Statement]:
    """Return a function's statements, with one name for values that are only passed on together.

    Args:
        taken: names that are in use; new ones are added.
        mostly: skip results most of which would keep their names.
    """
    own = [each for each in _own(body) if _is_taking_apart(each)]
    if not own:
        return list(body)
    together = _together(body, names_assigned(own))
    runs: dict[str, tuple[list[str], Expr]] = {}
    changed: dict[int, Statement | None] = {}
    for statement in own:
        targets = statement.targets
        run = _longest(list(map(_name, targets.items)), together)
        if len(targets.items) == 1 and together(flat(targets.items[0]), ""):
            run = [flat(targets.items[0])]
        if len(run) == len(targets.items) and isinstance(statement.value, Atom):
            changed[id(statement)] = None
            runs[run[0]] = run, statement.value
            continue
        if len(run) < _fewest(statement) or (mostly and 2 * len(run) < len(targets.items)):
            continue
        rest = Atom(_fresh(_plural(run), taken))
        if len(run) == len(targets.items):
            if not _gives_sequence(statement.value):
                continue
            changed[id(statement)] = dataclasses.replace(statement, targets=rest.text)
        else:
            start = targets.items.index(Atom(run[0]))
            items = (*targets.items[:start], Star(rest), *targets.items[start + len(run) :])
            changed[id(statement)] = dataclasses.replace(statement, targets=tuple_(items))
        runs[run[0]] = run, rest
    if not changed:
        return list(body)
    return _rewritten(body, changed, lambda expr: _passing(expr, runs))


def _together(body: Sequence[Statement], names: Iterable[str]) -> Callable[[str, str], bool]:
    """Return a predicate on names: whether two of them are only read as consecutive items.

    For a single name, it returns whether that is only read as the only item.
    """
    reads, assigned = Counter(names_read(body)), Counter(names_assigned(body))
    passed = _Passed(frozenset(names))
    for expr in _expressions(body):
        passed.note(expr)

    def together(name: str, after: str) -> bool:
        times = passed.pairs[name, after] if after else passed.single[name]
        return times > 0 and all(
            reads[each] == passed.items[each] == times and assigned[each] <= 1
            for each in (name, after or name)
        )

    return together


def with_rest(function: Function, taken: set[str]) -> Function:
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
    rest = _fresh(_plural(run), taken)
    runs: dict[str, tuple[list[str], Expr]] = {run[0]: (run, Atom(rest))}
    body = _rewritten(function.body, {}, lambda expr: _passing(expr, runs))
    return dataclasses.replace(function, parameters=(*names[:-count], f"*{rest}"), body=body)


def _is_taking_apart(statement: Statement) -> bool:
    """Return whether a statement unpacks a value into names that are not the user's."""
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets, Sequence_)
        and isinstance(statement.value, (Atom, Call, Sequence_))
        and not statement.given
        and not any(isinstance(item, Star) for item in statement.targets.items)
        and not (isinstance(statement.value, Atom) and statement.equations)
    )


def _fewest(statement: Assign) -> int:
    return FEWEST_PARTS if isinstance(statement.value, Atom) else FEWEST


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


def _gives_sequence(value: Any) -> bool:
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


def _fresh(base: str, taken: set[str]) -> str:
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name


def _passing(expr: Any, runs: dict[str, tuple[list[str], Expr]]) -> Any:
    """Return an expression with `*rest` for each run of names."""

    def again(part: Any) -> Any:
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


def _with_stars(items: tuple[Any, ...], runs: dict[str, tuple[list[str], Expr]]) -> tuple[Any, ...]:
    made: list[Any] = []
    position = 0
    while position < len(items):
        run, rest = runs.get(_name(items[position]), ([], None))
        if run and [_name(item) for item in items[position : position + len(run)]] == run:
            made.append(Star(rest))  # type: ignore[arg-type]
            position += len(run)
        else:
            made.append(items[position])
            position += 1
    return tuple(made)


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


# Results that nothing reads


def unread(body: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a function without names for unread results: `first, *_ = f(x)`."""
    counts = Counter(names_read(body))
    changed: dict[int, Statement | None] = {}
    for statement in _own(body):
        if not isinstance(statement, Assign) or not isinstance(statement.targets, Sequence_):
            continue
        targets = _read_alone(statement.targets, counts)
        if targets != statement.targets:
            changed[id(statement)] = dataclasses.replace(statement, targets=targets)
        if targets == Sequence_("(", (Star(_UNREAD),)) and isinstance(statement.value, Atom):
            changed[id(statement)] = None
    return _rewritten(body, changed, None) if changed else list(body)


def _read_alone(targets: Sequence_, counts: Counter[str]) -> Sequence_:
    items: list[Any] = []
    for item in targets.items:
        if isinstance(item, Sequence_):
            inside = _read_alone(item, counts)
            items.append(_UNREAD if all(map(_is_unread, inside.items)) else inside)
        elif isinstance(item, Atom):
            items.append(item if counts[item.text] else _UNREAD)
        else:
            items.append(item)
    last = max((i for i, item in enumerate(items) if not _is_unread(item)), default=-1)
    starred_before = any(isinstance(item, Star) for item in items[: last + 1])
    if len(items) - last > 2 and not starred_before:
        items[last + 1 :] = [Star(_UNREAD)]
    return Sequence_(targets.bracket, tuple(items))


def _is_unread(item: Any) -> bool:
    return item in (_UNREAD, Star(_UNREAD))


# Comprehensions for similar values


def alike(body: Sequence[Statement], indent: str, taken: set[str]) -> list[Statement]:
    """Return the statements of a function, with comprehensions for consecutive similar ones."""
    inside = [_with_alike_items(_alike_within(each, indent, taken), taken) for each in body]
    made: list[Statement] = []
    position = 0
    while position < len(inside):
        stop = position + 1
        while stop < len(inside) and _continues(inside[position:stop], inside[stop]):
            stop += 1
        one = _one(inside[position:stop], indent, taken)  # type: ignore[arg-type]
        made.extend([one] if one is not None else inside[position:stop])
        position = stop
    return made


def _alike_within(statement: Statement, indent: str, taken: set[str]) -> Statement:
    if isinstance(statement, (With, For)):
        inside = alike(statement.body, f"{indent}    ", taken)
        return dataclasses.replace(statement, body=inside)
    return statement


def _continues(before: Sequence[Statement], statement: Statement) -> bool:
    """Return whether a statement is similar to those before it, and independent of them."""
    first = before[0]
    if not (_is_computed(first) and _is_computed(statement)):
        return False
    made = {each.targets for each in before if isinstance(each, Assign)}
    one, other = first.value, statement.value  # type: ignore[union-attr]
    return _shape(one) == _shape(other) and not made & set(_leaves(other))


def _is_computed(statement: Statement) -> bool:
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets, str)
        and not isinstance(statement.value, Atom)
        and bool(statement.equations)
        and not statement.comment
    )


def _one(run: Sequence[Assign], indent: str, taken: set[str]) -> Assign | None:
    """Return a comprehension for similar statements, or None if that is not shorter."""
    if len(run) < FEWEST_STATEMENTS:
        return None
    each = _each([statement.value for statement in run], taken)
    if each is None:
        return None
    targets = tuple_(Atom(str(statement.targets)) for statement in run)
    equations = [equation for statement in run for equation in statement.equations]
    made = Assign(targets, Sequence_("[", (each,)), equations)
    return made if _height([made], indent) < _height(run, indent) else None


def _height(statements: Sequence[Statement], indent: str) -> int:
    return sum(1 for _ in lines(statements, indent))


def _with_alike_items(statement: Statement, taken: set[str]) -> Statement:
    if isinstance(statement, (Assign, Effect, Return)):
        return dataclasses.replace(statement, value=_gathered(statement.value, taken))
    return statement


def _gathered(expr: Any, taken: set[str]) -> Any:
    """Return an expression with comprehensions for similar items."""
    made = with_parts(expr, tuple(_gathered(part, taken) for part in parts_of(expr)))
    if not isinstance(made, Sequence_) or made.bracket == "{":
        return made
    items: list[Any] = []
    position = 0
    while position < len(made.items):
        stop = position + 1
        first = made.items[position]
        while stop < len(made.items) and isinstance(first, Call) and (
            _shape(first) == _shape(made.items[stop])
        ):  # fmt: skip
            stop += 1
        run = made.items[position:stop]
        each = _each(run, taken) if len(run) >= FEWEST_ITEMS else None
        if each is not None and len(flat(each)) < _SHORTER * len(flat(tuple_(run))):
            items.append(Star(Sequence_("[", (each,))))
        else:
            items.extend(run)
        position = stop
    if len(items) == 1 and len(made.items) > 1:
        return items[0].value if made.bracket == "[" else call("tuple", items[0].value.items[0])
    return Sequence_(made.bracket, tuple(items))


def _each(exprs: Sequence[Any], taken: set[str]) -> Each | None:
    """Return `f(x) for x in values` for expressions that differ in one name or two, or None."""
    columns = list(zip(*map(_leaves, exprs), strict=True))
    varying = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    if not 1 <= len(varying) <= _MOST_VARYING:
        return None
    names = [name for name in ("x", "y", "each", "other") if name not in taken][: len(varying)]
    if len(names) < len(varying):
        return None
    called = dict(zip(varying, names, strict=True))
    leaves = iter([called.get(column, column[0]) for column in columns])
    values = [tuple_(map(Atom, column)) for column in varying]
    target = ", ".join(names)
    over: Expr = values[0] if len(values) == 1 else call("zip", *values)
    return Each(_with_leaves(exprs[0], leaves), target, over)


_MOST_VARYING = 2
"""The maximum number of names in which the expressions of a comprehension differ."""


def _shape(expr: Any) -> Any:
    """Return a key for an expression without the names of values in it."""
    if isinstance(expr, Atom):
        return None if _name(expr) else expr.text
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return (Call, expr.function.text, *map(_shape, expr.items))
    if isinstance(expr, (Lambda, Each)):
        return id(expr)
    label = [getattr(expr, name, "") for name in ("name", "operator", "bracket", "target")]
    return (type(expr), *label, *map(_shape, parts_of(expr)))


def _leaves(expr: Any) -> Iterator[str]:
    """Yield the names of values in an expression, in order."""
    if isinstance(expr, Atom):
        if name := _name(expr):
            yield name
    elif isinstance(expr, Call) and isinstance(expr.function, Atom):
        for item in expr.items:
            yield from _leaves(item)
    else:
        for part in parts_of(expr):
            yield from _leaves(part)


def _with_leaves(expr: Any, leaves: Iterator[str]) -> Any:
    if isinstance(expr, Atom):
        return Atom(next(leaves)) if _name(expr) else expr
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return Call(expr.function, tuple([_with_leaves(item, leaves) for item in expr.items]))
    return with_parts(expr, tuple([_with_leaves(part, leaves) for part in parts_of(expr)]))


# Statements and expressions


def _name(item: Any) -> str:
    """Return the name that an item is, or an empty string."""
    if isinstance(item, Atom) and is_identifier(item.text) and item != _UNREAD:
        return item.text
    return ""


def _own(body: Sequence[Statement]) -> Iterator[Any]:
    """Yield the statements of a function, without those of inner functions."""
    for statement in body:
        yield statement
        if isinstance(statement, (With, For)):
            yield from _own(statement.body)


def _expressions(body: Iterable[Statement]) -> Iterator[Expr]:
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value) | Return(value):
                yield value
            case For(_, values, inside):
                yield values
                yield from _expressions(inside)
            case Function(_, _, inside) | With(_, inside):
                yield from _expressions(inside)
            case _:
                pass


def _rewritten(
    body: Sequence[Statement],
    changed: dict[int, Statement | None],
    expression: Callable[[Any], Any] | None,
) -> list[Statement]:
    """Return statements with replacements, by their ids, and with rewritten expressions."""
    made: list[Statement] = []
    for old in body:
        statement = changed.get(id(old), old)
        match statement:
            case None:
                continue
            case Assign(_, value) | Effect(value) | Return(value) if expression is not None:
                statement = dataclasses.replace(statement, value=expression(value))
            case For(_, values, inside):
                values = expression(values) if expression is not None else values
                inside = _rewritten(inside, changed, expression)
                statement = dataclasses.replace(statement, values=values, body=inside)
            case Function(_, _, inside) | With(_, inside):
                inside = _rewritten(inside, changed, expression)
                statement = dataclasses.replace(statement, body=inside)
            case _:
                pass
        made.append(statement)
    return made
