"""Values that are used once, written where they are used if that reads better.

The order in which equations are made stays what it was: a value moves only from the statement right before the one that uses it, and only
to a place that Python reaches before it evaluates anything else there. So the program that the text stands for is the same, to the
order of its equations. Names that the user gave stay.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard

from jaxsight.sourcerizer.exprs import (
    Atom,
    Attribute,
    Binary,
    Call,
    Each,
    Expr,
    Index,
    Keyword,
    Lambda,
    Pair,
    Sequence_,
    Slot,
    Star,
    Unary,
    is_identifier,
    rebuilt,
)
from jaxsight.sourcerizer.layout import STEP, WIDTH, flat
from jaxsight.sourcerizer.module import (
    Assign,
    Effect,
    For,
    Function,
    Raw,
    Remark,
    Return,
    Statement,
    With,
    replaced,
)

MOST_STEPS = 5
"""Operations and calls that one line may hold."""

DEEPEST = 3
"""Levels of calls and brackets within one another."""

FEW = 3
"""Times that a short part of an argument is read without a name of its own."""

FAR = 16
"""Statements between a function and its use, at most, for it to become a lambda there."""

_HARMLESS = frozenset({"at"})
"""Attributes that make no equation."""


def inlined(body: Sequence[Statement], indent: str = "") -> list[Statement]:
    """The statements of a module or function, and of the functions in it, with values moved to where they are used."""
    inside = _without_readings([_within(statement, indent) for statement in body])
    inside = _read_alone(_returned_together(_returned_whole(_passed_whole(inside))))
    counts = Counter(_names(inside))
    done: list[Statement] = []
    for statement in inside:
        made = statement
        if isinstance(statement, (Assign, Effect, Return)):
            taking = _taking(done, statement, counts, indent)
            made = _with_lambdas(done, taking, counts, indent)
        done.append(made)
    return done


def _with_lambdas(
    before: list[Statement],
    statement: Assign | Effect | Return,
    counts: Counter[str],
    indent: str,
) -> Assign | Effect | Return:
    """`statement` with small functions that only it uses, to loop over say, as lambdas; those are taken from `before`."""
    items = statement.value.items if isinstance(statement.value, Call) else ()
    for item in items:
        place = _defined(before, item.text) if isinstance(item, Atom) else None
        if place is None:
            continue
        function = before[place]
        if not _is_small(function) or counts[function.name] != 1:
            continue
        inside = function.body[0]
        whole = statement.value
        assert isinstance(inside, Return)
        assert isinstance(whole, Call)
        given = Lambda(function.parameters, inside.value)
        value = Call(whole.function, tuple(given if i is item else i for i in whole.items))
        if len(indent + _start(statement) + flat(value)) <= WIDTH:
            del before[place]
            equations = [*inside.equations, *statement.equations]
            statement = dataclasses.replace(statement, value=value, equations=equations)
    return statement


def _defined(before: Sequence[Statement], name: str) -> int | None:
    """Where the function of that name is; it stands not far from what it is made for."""
    for place in range(len(before) - 1, max(len(before) - 1 - FAR, -1), -1):
        statement = before[place]
        if isinstance(statement, Function) and statement.name == name:
            return place
    return None


def _is_small(statement: Statement) -> TypeGuard[Function]:
    """Whether it is a function of names that gives one short expression."""
    return (
        isinstance(statement, Function)
        and not statement.decorators
        and not statement.docstring
        and all(map(is_identifier, statement.parameters))
        and len(statement.body) == 1
        and isinstance(statement.body[0], Return)
        and _steps(statement.body[0].value) <= MOST_STEPS
    )


def _without_readings(body: Sequence[Statement]) -> list[Statement]:
    """Without names for parts of arguments (`params["w"]`) that are read once, or that are as short as the name: reading them does nothing."""
    counts = Counter(_names(body))
    short: dict[str, Expr] = {}
    for statement in body:
        if (
            isinstance(statement, Assign)
            and isinstance(statement.targets, str)
            and _reads_part(statement)
        ):
            name = statement.targets
            if counts[name] <= 1 or (
                counts[name] <= FEW and len(flat(statement.value)) <= len(name) + 2
            ):
                short[name] = statement.value
    if not short:
        return list(body)

    def leaf(found: Atom | Slot) -> Expr:
        return short.get(found.text, found) if isinstance(found, Atom) else found

    kept = [
        s
        for s in body
        if not (isinstance(s, Assign) and isinstance(s.targets, str) and s.targets in short)
    ]
    return replaced(kept, leaf)


def _read_alone(body: Sequence[Statement]) -> list[Statement]:
    """Without names for the parts of a tuple that nothing reads: `first, *_ = carry`."""
    counts = Counter(_names(body))
    kept: list[Statement] = []
    for statement in body:
        if (
            isinstance(statement, Assign)
            and isinstance(statement.targets, Sequence_)
            and isinstance(statement.value, Atom)
            and not statement.equations
            and all(isinstance(item, Atom) for item in statement.targets.items)
        ):
            items: list[Any] = [
                item if isinstance(item, Atom) and counts[item.text] else _UNREAD
                for item in statement.targets.items
            ]
            last = max((i for i, item in enumerate(items) if item != _UNREAD), default=-1)
            if last < 0:
                continue
            if len(items) - last > 2:
                items[last + 1 :] = [Star(_UNREAD)]
            bracket = statement.targets.bracket
            statement = dataclasses.replace(statement, targets=Sequence_(bracket, tuple(items)))
        kept.append(statement)
    return kept


_UNREAD = Atom("_")


def _passed_whole(body: Sequence[Statement]) -> list[Statement]:
    """Without names for the parts of a tuple that are only ever passed on together, in order: `f(*xs)`."""
    counts = Counter(_names(body))
    kept = list(body)
    for statement in body:
        if not (
            isinstance(statement, Assign)
            and isinstance(statement.targets, Sequence_)
            and isinstance(statement.value, Atom)
        ):
            continue
        if statement.equations or statement.given:
            continue
        parts = statement.targets.items
        others = [other for other in kept if other is not statement]
        passed = [_starred(other, parts, statement.value) for other in others]
        times = sum(count for _, count in passed)
        if times and all(isinstance(part, Atom) and counts[part.text] == times for part in parts):
            kept = [made for made, _ in passed]
    return kept


_LOOPS = frozenset({"lax.scan", "lax.while_loop", "lax.fori_loop", "lax.cond", "lax.switch"})
"""Functions that give tuples where functions of ours do."""


def _returned_whole(body: Sequence[Statement]) -> list[Statement]:
    """`return lax.scan(…)`, where all parts of what it gives were named to be returned as they are."""
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


def _returned_together(body: Sequence[Statement]) -> list[Statement]:
    """`ct, *grads = backward(ct)`, where the last of a function's results are only returned, in order: `return ct, *grads`."""
    kept = list(body)
    match kept:
        case [*_, Return(Sequence_("(", items))]:
            returned = list(items)
        case _:
            return kept
    counts = Counter(_names(kept))
    for place, statement in enumerate(kept[:-1]):
        if not (
            isinstance(statement, Assign)
            and isinstance(statement.targets, Sequence_)
            and isinstance(statement.value, Call)
        ):
            continue
        targets = list(statement.targets.items)
        count = 0
        while count < len(targets) - 1 and _only_returned(targets[-1 - count], returned, counts):
            count += 1
        tail = targets[len(targets) - count :]
        start = returned.index(tail[0]) if count > 1 else -1
        if start < 0 or returned[start : start + count] != tail:
            continue
        rest = Star(tail[0])  # type: ignore[arg-type]
        kept[place] = dataclasses.replace(
            statement, targets=Sequence_("(", (*targets[: len(targets) - count], rest))
        )
        returned[start : start + count] = [rest]
    value = Sequence_("(", tuple(returned))
    kept[-1] = dataclasses.replace(kept[-1], value=value)  # type: ignore[arg-type]
    return kept


def _only_returned(target: Any, returned: Sequence[Any], counts: Counter[str]) -> bool:
    return isinstance(target, Atom) and target in returned and counts[target.text] == 1


def _starred(statement: Statement, parts: tuple[Any, ...], whole: Atom) -> tuple[Statement, int]:
    """`statement` with `*whole` for these arguments wherever they are passed in a row, and how often they are."""
    times = 0

    def again(expr: Any) -> Any:
        nonlocal times
        match expr:
            case Call(function, items):
                made = tuple(map(again, items))
                for start in range(len(made) - len(parts) + 1):
                    if made[start : start + len(parts)] == parts:
                        times += 1
                        made = (*made[:start], Star(whole), *made[start + len(parts) :])
                        break
                return Call(again(function), made)
            case Attribute(value, name):
                return Attribute(again(value), name)
            case _:
                return expr

    if isinstance(statement, (Assign, Effect, Return)):
        return dataclasses.replace(statement, value=again(statement.value)), times
    return statement, 0


def _reads_part(statement: Assign) -> bool:
    value = statement.value
    while isinstance(value, (Index, Attribute)):
        value = value.value
    return (
        not statement.equations
        and isinstance(value, Atom)
        and not isinstance(statement.value, Atom)
    )


def _within(statement: Statement, indent: str) -> Statement:
    match statement:
        case Function():
            return dataclasses.replace(statement, body=inlined(statement.body, indent + STEP))
        case With() | For():
            return dataclasses.replace(statement, body=inlined(statement.body, indent + STEP))
        case _:
            return statement


def _taking(
    before: list[Statement],
    statement: Assign | Effect | Return,
    counts: Counter[str],
    indent: str,
) -> Assign | Effect | Return:
    """`statement` with what the ones before it give it, as far as that reads well; those are taken from `before`."""
    while (place := _last_value(before)) is not None:
        given = before[place]
        assert isinstance(given, Assign)
        assert isinstance(given.targets, str)
        name = given.targets
        if counts[name] != 1 or not _reached_first(statement.value, name):
            break
        value = rebuilt(
            statement.value,
            lambda leaf, name=name, given=given: (
                given.value  # type: ignore[misc]
                if isinstance(leaf, Atom) and leaf.text == name
                else leaf
            ),
        )
        made = dataclasses.replace(statement, value=value)
        whole = isinstance(statement, Return) and statement.value == Atom(name)
        if not whole and (given.given or not _reads_well(made, given.value, indent)):
            break
        made = dataclasses.replace(made, equations=[*given.equations, *made.equations])
        del before[place]
        statement = made
    return statement


def _last_value(before: Sequence[Statement]) -> int | None:
    """The last statement that does anything, if it names one value: definitions of functions make no equations."""
    for place in range(len(before) - 1, -1, -1):
        statement = before[place]
        if isinstance(statement, Function):
            continue
        if (
            isinstance(statement, Assign)
            and isinstance(statement.targets, str)
            and statement.equations
        ):
            return place
        return None
    return None


def _reads_well(statement: Assign | Effect | Return, moved: Expr, indent: str) -> bool:
    value = statement.value
    return (
        len(indent + _start(statement) + flat(value)) <= WIDTH
        and _steps(value) <= MOST_STEPS
        and _depth(value) <= DEEPEST
        and not isinstance(moved, (Lambda, Sequence_))
    )


def _start(statement: Assign | Effect | Return) -> str:
    """What stands before its value, or would if it were returned."""
    if not isinstance(statement, Assign):
        return "return "
    targets = statement.targets
    return f"{targets if isinstance(targets, str) else flat(targets)} = "


_PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Keyword: lambda expr: (expr.value,),
    Star: lambda expr: (expr.value,),
    Unary: lambda expr: (expr.value,),
    Attribute: lambda expr: (expr.value,),
    Pair: lambda expr: (expr.key, expr.value),
    Call: lambda expr: (expr.function, *expr.items),
    Index: lambda expr: (expr.value, *expr.items),
    Sequence_: lambda expr: tuple(expr.items),
    Binary: lambda expr: (expr.left, expr.right),
    Each: lambda expr: (expr.values, expr.body),
}


def _parts(expr: Any) -> tuple[Any, ...]:
    """What Python evaluates of an expression, in order, before the expression itself."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


def _does(expr: Any) -> bool:
    """Whether evaluating an expression, its parts aside, may make equations."""
    match expr:
        case Attribute(_, name):
            return name not in _HARMLESS
        case Index(Attribute(_, name), _):
            return name not in _HARMLESS
        case Call() | Index() | Binary() | Unary():
            return True
        case _:
            return False


def _method(expr: Any) -> bool:
    """`x.astype` in `x.astype(…)`: looked up, not computed."""
    return isinstance(expr, Attribute)


def _reached_first(expr: Any, name: str) -> bool:
    """Whether a name is read before anything is computed; false where it is not read at all."""
    for part, called in _evaluated(expr, False):
        if isinstance(part, Atom) and part.text == name:
            return True
        if _does(part) and not called:
            return False
    return False


def _evaluated(expr: Any, called: bool) -> Iterator[tuple[Any, bool]]:
    """Expressions in the order in which they are done with, and whether they are only called."""
    parts = _parts(expr)
    for index, part in enumerate(parts):
        yield from _evaluated(part, isinstance(expr, Call) and index == 0 and _method(part))
    yield expr, called


_STEPS = frozenset({Call, Binary, Unary, Index})


def _steps(expr: Any) -> int:
    steps = 1 if type(expr) in _STEPS else 0
    for part in _parts(expr):
        steps += _steps(part)
    return steps


_LEVELS = frozenset({Call, Index, Binary})


def _depth(expr: Any) -> int:
    deepest = 0
    for part in _parts(expr):
        deepest = max(deepest, _depth(part))
    return deepest + 1 if type(expr) in _LEVELS else deepest


def _names(body: Sequence[Statement]) -> Iterator[str]:
    """Every reading of a name, as often as it is read."""
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value) | Return(value):
                yield from _read(value)
            case Function(_, parameters, inside, decorators):
                for parameter in parameters:
                    yield from _words(parameter.partition("=")[2])
                for decorator in decorators:
                    yield from _read(decorator)
                yield from _names(inside)
            case With(context, inside):
                yield from _read(context)
                yield from _names(inside)
            case For(_, values, inside):
                yield from _read(values)
                yield from _names(inside)
            case Raw(lines):
                for line in lines:
                    yield from _words(line)
            case Remark():
                pass


@functools.lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Names at the start of what a text says: of `jnp.ones` only `jnp`."""
    if is_identifier(text):
        return (text,)
    return tuple(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def _read(expr: Any) -> list[str]:
    """Names that an expression reads, each as often as it does."""
    found: list[str] = []
    _gather(expr, found)
    return found


def _gather(expr: Any, found: list[str]) -> None:
    kind = type(expr)
    if kind is Atom:
        found.extend(_words(expr.text))
    elif kind is Lambda:
        inside = _read(expr.body)
        found.extend(inside)
        found.extend(inside)  # what is evaluated later, or more than once, stays where it is
    else:
        for part in _parts(expr):
            _gather(part, found)


def handled(body: Sequence[Statement]) -> set[str]:
    """Names whose values are handled by Python itself, an operator, a method or an index, not only passed to public functions."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value):
                found |= _handled(value, True)
            case Return(value):
                found |= _handled(value, False)
            case Function(_, _, inside) | With(_, inside) | For(_, _, inside):
                found |= handled(inside)
            case _:
                pass
    return found


def _handled(expr: Any, outer: bool) -> set[str]:
    match expr:
        case Atom(text):
            return {text} if outer and is_identifier(text) else set()
        case Call(function, items):
            public = isinstance(function, Atom) and "." in function.text
            inside = [_handled(item, not public) for item in items]
            return set().union(_handled(function, True), *inside)
        case Sequence_(_, items):
            return set().union(*(_handled(item, outer) for item in items))
        case Keyword(_, value) | Star(value):
            return _handled(value, outer)
        case _:
            return set().union(*(_handled(part, True) for part in _parts(expr)))
