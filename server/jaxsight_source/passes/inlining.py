"""Inlines values that are used once, if the result is more readable.

The order of the equations does not change: a value moves only from the statement right before its
use, and only to a place that Python evaluates before anything else there. So the text stays the
same program, to the order of its equations. The user's own names stay.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from jaxsight_source.passes.comprehensions import alike
from jaxsight_source.passes.together import returned, returned_whole, starred, unread, with_rest
from jaxsight_source.text.exprs import (
    Atom,
    Attribute,
    Binary,
    Call,
    Choice,
    Expr,
    Index,
    Keyword,
    Lambda,
    Sequence_,
    Slot,
    Star,
    Unary,
    is_identifier,
    parts_of,
    rebuilt,
)
from jaxsight_source.text.imports import IMPORTS
from jaxsight_source.text.layout import STEP, WIDTH, flat, precedence
from jaxsight_source.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Return,
    Statement,
    With,
    height,
)
from jaxsight_source.text.walks import contents, names_assigned, names_read, replaced

MOST_STEPS = 5
"""The maximum number of operations and calls on one line.

A choice, as are the next four: too small, and each value has a name that says nothing; too large,
and a line has to be read from the inside out.
"""

DEEPEST = 2
"""The maximum number of nested brackets."""

FEW = 3
"""How often a short part of an argument is read at most without a name of its own."""

SHORT = 24
"""The maximum length of a short expression, in characters."""

FAR = 16
"""The maximum number of statements between a function and its use as a lambda."""

_HARMLESS = frozenset({"at"})
"""Attributes that create no equation."""


def inlined(body: Sequence[Statement], main: str) -> list[Statement]:
    """Return the statements of a module, with values moved to their uses, also inside functions.

    Args:
        main: the function that callers use; it keeps its parameters.
    """
    functions = {statement.name for statement in body if isinstance(statement, Function)}
    outside = [statement for statement in body if not isinstance(statement, Function)]
    names = {*names_assigned(outside), *functions, *IMPORTS}
    statements = _inlined(body, "", _Names(functions, names))
    return [
        with_rest(statement, names | _names_of(statement))
        if isinstance(statement, Function) and statement.name != main
        else statement
        for statement in statements
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Names:
    """The functions of the module, and the names in use, to which new names are added."""

    functions: set[str]
    used: set[str]


def _names_of(function: Function) -> set[str]:
    return {*names_assigned([function]), *names_read([function])}


def _inlined(body: Sequence[Statement], indent: str, names: _Names) -> list[Statement]:
    inside = _without_readings([_within(part, indent, names) for part in body], indent)
    counts = Counter(names_read(inside))
    done: list[Statement] = []
    for statement in inside:
        shorter = statement
        if isinstance(statement, (Assign, Effect, Return)):
            taking = _taking(done, statement, counts, indent)
            shorter = _with_lambdas(done, taking, counts, indent)
        elif isinstance(statement, Function) and statement.runs:
            decorator = _taking(done, Effect(statement.decorators[0]), counts, indent).value
            shorter = dataclasses.replace(statement, decorators=[decorator])
        done.append(shorter)
    return done


def _with_lambdas(
    before: list[Statement],
    statement: Assign | Effect | Return,
    counts: Counter[str],
    indent: str,
) -> Assign | Effect | Return:
    """Return `statement` with the small functions that only it uses as lambdas.

    These functions are removed from `before`.
    """
    arguments = statement.value.items if isinstance(statement.value, Call) else ()
    for argument in arguments:
        position = _defined(before, argument.text) if isinstance(argument, Atom) else None
        if position is None:
            continue
        function = before[position]
        if not _is_small(function) or counts[function.name] != 1:
            continue
        inside = function.body[0]
        outer = statement.value
        assert isinstance(inside, Return)
        assert isinstance(outer, Call)
        inlined_function = Lambda(function.parameters, inside.value)
        value = Call(
            outer.function, tuple(inlined_function if i is argument else i for i in outer.items)
        )
        if len(indent + _start(statement) + flat(value)) <= WIDTH:
            del before[position]
            equations = [*inside.equations, *statement.equations]
            statement = dataclasses.replace(statement, value=value, equations=equations)
    return statement


def _defined(before: Sequence[Statement], name: str) -> int | None:
    """Return the position of the function of that name, if it is close to its use, or None."""
    for position in range(len(before) - 1, max(len(before) - 1 - FAR, -1), -1):
        statement = before[position]
        if isinstance(statement, Function) and statement.name == name:
            return position
    return None


def _is_small(statement: Statement) -> TypeGuard[Function]:
    """Return whether a statement is an undecorated function that returns one short expression."""
    return (
        isinstance(statement, Function)
        and not statement.decorators
        and not statement.docstring
        and all(map(is_identifier, statement.parameters))
        and len(statement.body) == 1
        and isinstance(statement.body[0], Return)
        and _steps(statement.body[0].value) <= MOST_STEPS
    )


def _without_readings(body: Sequence[Statement], indent: str) -> list[Statement]:
    """Remove names for parts of arguments (`params["w"]`) that are read once.

    Short parts that do not break a line may be read up to `FEW` times. Reading a part has no
    effect.
    """
    counts = Counter(names_read(body))
    short = {
        statement.targets: statement.value
        for statement in body
        if isinstance(statement, Assign)
        and isinstance(statement.targets, str)
        and _reads_part(statement)
        and (
            counts[statement.targets] <= 1
            or (counts[statement.targets] <= FEW and len(flat(statement.value)) <= SHORT)
        )
    }
    if not short:
        return list(body)
    for name in _making_long(body, indent, short):
        if counts[name] > 1:
            short.pop(name, None)
    return [
        _with_values(s, short)
        for s in body
        if not (isinstance(s, Assign) and isinstance(s.targets, str) and s.targets in short)
    ]


def _with_values(statement: Statement, values: dict[str, Expr]) -> Statement:
    """Return a statement with the values of these names in their place."""

    def leaf(part: Atom | Slot) -> Expr:
        return values.get(part.text, part) if isinstance(part, Atom) else part

    (rewritten,) = replaced([statement], leaf)
    return rewritten


def _making_long(body: Sequence[Statement], indent: str, values: dict[str, Expr]) -> Iterator[str]:
    """Yield the names whose values would break a statement over more lines."""
    for statement in body:
        match statement:
            case Assign() | Effect() | Return():
                read = {name for name in names_read([statement]) if name in values}
                if read and height([statement], indent) < height(
                    [_with_values(statement, values)], indent
                ):
                    yield from read
            case _:
                yield from _making_long(contents(statement)[1], indent + STEP, values)


def _reads_part(statement: Assign) -> bool:
    value = statement.value
    while isinstance(value, (Index, Attribute)):
        value = value.value
    return (
        not statement.equations
        and isinstance(value, Atom)
        and not isinstance(statement.value, Atom)
    )


def _within(statement: Statement, indent: str, names: _Names) -> Statement:
    inner = indent + STEP
    match statement:
        case Function():
            used = names.used if indent else names.used | _names_of(statement)
            own = _Names(names.functions, used)
            unpacked = starred(returned_whole(statement.body), used, mostly=True)
            body = alike(_inlined(unpacked, inner, own), inner, used)
            body = returned(unread(starred(body, used)), names.functions)
            shorter = dataclasses.replace(statement, body=body)
            return with_rest(shorter, used) if indent else shorter
        case With() | For():
            return dataclasses.replace(statement, body=_inlined(statement.body, inner, names))
        case _:
            return statement


def _taking(
    before: list[Statement],
    statement: Assign | Effect | Return,
    counts: Counter[str],
    indent: str,
) -> Assign | Effect | Return:
    """Return `statement` with the values of previous statements inlined, while it stays readable.

    These statements are removed from `before`.
    """
    while (position := _last_value(before)) is not None:
        assignment = before[position]
        assert isinstance(assignment, Assign)
        assert isinstance(assignment.targets, str)
        name = assignment.targets
        if counts[name] != 1 or not _reached_first(statement.value, name):
            break
        value = rebuilt(
            statement.value,
            lambda leaf, name=name, assignment=assignment: (
                assignment.value  # type: ignore[misc]
                if isinstance(leaf, Atom) and leaf.text == name
                else leaf
            ),
        )
        taking = dataclasses.replace(statement, value=value)
        is_returned = isinstance(statement, Return) and statement.value == Atom(name)
        if not is_returned and (
            assignment.user_named or not _reads_well(statement, taking, assignment.value, indent)
        ):
            break
        taking = dataclasses.replace(taking, equations=[*assignment.equations, *taking.equations])
        del before[position]
        statement = taking
    return statement


def _last_value(before: Sequence[Statement]) -> int | None:
    """Return the position of the last statement other than a function, if it names one value.

    Definitions of functions create no equations, unless a decorator calls them.
    """
    for position in range(len(before) - 1, -1, -1):
        statement = before[position]
        if isinstance(statement, Function) and not statement.runs:
            continue
        if (
            isinstance(statement, Assign)
            and isinstance(statement.targets, str)
            and statement.equations
        ):
            return position
        return None
    return None


def _reads_well(
    before: Assign | Effect | Return, statement: Assign | Effect | Return, moved: Expr, indent: str
) -> bool:
    """Return whether a statement stays readable, and takes no more lines, with `moved` inlined."""
    value = statement.value
    return (
        (
            len(indent + _start(statement) + flat(value)) <= WIDTH
            or height([statement], indent) <= height([before], indent)
        )
        and _steps(value) <= MOST_STEPS
        and _depth(value) <= DEEPEST
        and not isinstance(moved, (Choice, Lambda, Sequence_))
    )


def _start(statement: Assign | Effect | Return) -> str:
    """Return the text before a statement's value; for an effect, that of a `return`."""
    if isinstance(statement, Effect) and statement.target is not None:
        return f"{flat(statement.target)} = "
    if not isinstance(statement, Assign):
        return "return "
    targets = statement.targets
    return f"{targets if isinstance(targets, str) else flat(targets)} = "


def _does(expr: object) -> bool:
    """Return whether evaluating an expression, apart from its parts, may create equations."""
    match expr:
        case Attribute(_, name):
            return name not in _HARMLESS
        case Index(Attribute(_, name), _):
            return name not in _HARMLESS
        case Call() | Index() | Binary() | Unary():
            return True
        case _:
            return False


def _reached_first(expr: object, name: str) -> bool:
    """Return whether a name is read before anything is computed."""
    for part, called in _evaluated(expr, False):
        if isinstance(part, Atom) and part.text == name:
            return True
        if _does(part) and not called:
            return False
    return False


def _evaluated(expr: object, called: bool) -> Iterator[tuple[object, bool]]:
    """Yield expressions in the order of evaluation, and whether each is a method being called."""
    parts = parts_of(expr)
    for index, part in enumerate(parts):
        yield from _evaluated(
            part, isinstance(expr, Call) and index == 0 and isinstance(part, Attribute)
        )
    yield expr, called


_STEPS = frozenset({Call, Binary, Unary, Index})


def _steps(expr: object) -> int:
    """Count operations and calls; a collection counts as its item with the most of them."""
    if _is_part(expr):
        return 0
    inside = map(_steps, parts_of(expr))
    if type(expr) is Sequence_:
        return max(inside, default=0)
    return sum(inside) + (type(expr) in _STEPS)


def _is_part(expr: object) -> bool:
    """Return whether an expression reads a part of an argument: `params["w"]`."""
    if type(expr) is not Index or not all(type(index) is Atom for index in expr.items):
        return False
    return type(expr.value) is Atom or _is_part(expr.value)


def _depth(expr: Any) -> int:
    """Count nested brackets; those of a chain `x.sum().reshape()` are side by side."""
    kind = type(expr)
    if _is_part(expr):
        return 0
    if kind is Call:
        inside = max(map(_depth, expr.items), default=0)
        return max(_depth(expr.function), inside + 1)
    if kind is Index:
        inside = max(map(_depth, expr.items), default=0)
        return max(_depth(expr.value), inside and inside + 1)
    if kind is Binary:
        return max(_operand_depth(expr, expr.left), _operand_depth(expr, expr.right))
    return max(map(_depth, parts_of(expr)), default=0)


def _operand_depth(expr: Binary, operand: Expr) -> int:
    is_looser = precedence(operand) < precedence(expr)
    return _depth(operand) + is_looser


def handled(body: Sequence[Statement]) -> set[str]:
    """Return the names whose values Python itself handles, by an operator, a method or an index.

    The values of other names are only passed to public functions.
    """
    names: set[str] = set()
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value):
                names |= _handled(value, True)
            case Return(value):
                names |= _handled(value, False)
            case _:
                names |= handled(contents(statement)[1])
    return names


def _handled(expr: object, outer: bool) -> set[str]:
    match expr:
        case Atom(text):
            return {text} if outer and is_identifier(text) else set()
        case Call(function, items):
            public = isinstance(function, Atom) and "." in function.text
            inside = [_handled(part, not public) for part in items]
            return set().union(_handled(function, True), *inside)
        case Sequence_(_, items):
            return set().union(*(_handled(part, outer) for part in items))
        case Keyword(_, value) | Star(value):
            return _handled(value, outer)
        case _:
            return set().union(*(_handled(part, True) for part in parts_of(expr)))
