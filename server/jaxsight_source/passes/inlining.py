"""Inlines values that are used once, if the result is more readable.

The order of the equations does not change: a value moves only from the statement right before its
use, and only to a place that Python evaluates before anything else there. So the text stays the
same program, to the order of its equations. The user's own names stay.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from jaxsight_source.passes import together
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import changed, indices_of, is_atom, parts_of, substituted
from jaxsight_source.text.layout import STEP, WIDTH, flat, parameters, precedence
from jaxsight_source.text.statements import (
    contents,
    equations_of,
    height,
    names_assigned,
    names_read,
    rewritten,
)

_Valued = ast.Assign | ast.Expr | ast.Return
"""Statements with a value."""

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


def inlined(body: Sequence[ast.stmt], main: str) -> list[ast.stmt]:
    """Return the statements of a module, with values moved to their uses, also inside functions.

    Args:
        main: the function that callers use; it keeps its parameters.
    """
    functions = {statement.name for statement in body if isinstance(statement, ast.FunctionDef)}
    outside = [statement for statement in body if not isinstance(statement, ast.FunctionDef)]
    names = {*names_assigned(outside), *functions, *exprs.IMPORTS}
    statements = _inlined(body, "", _Names(functions, names))
    return [
        together.with_rest(statement, names | _names_of(statement))
        if isinstance(statement, ast.FunctionDef) and statement.name != main
        else statement
        for statement in statements
    ]


def _value(statement: _Valued) -> ast.expr:
    assert statement.value is not None  # there is no bare `return`
    return statement.value


@dataclass(frozen=True, slots=True)
class _Names:
    """The functions of the module, and the names in use, to which new names are added."""

    functions: set[str]
    used: set[str]


def _names_of(function: ast.FunctionDef) -> set[str]:
    return {*names_assigned([function]), *names_read([function])}


def _inlined(body: Sequence[ast.stmt], indent: str, names: _Names) -> list[ast.stmt]:
    inside = _without_readings([_within(part, indent, names) for part in body], indent)
    counts = Counter(names_read(inside))
    done: list[ast.stmt] = []
    for statement in inside:
        shorter = statement
        if isinstance(statement, _Valued):
            taking = _taking(done, statement, counts, indent)
            shorter = _with_lambdas(done, taking, counts, indent)
        elif isinstance(statement, ast.FunctionDef) and getattr(statement, "runs", False):
            decorator = _taking(done, ast.Expr(statement.decorator_list[0]), counts, indent).value
            shorter = changed(statement, decorator_list=[decorator])
        done.append(shorter)
    return done


def _with_lambdas(
    before: list[ast.stmt], statement: _Valued, counts: Counter[str], indent: str
) -> _Valued:
    """Return `statement` with the small functions that only it uses as lambdas.

    These functions are removed from `before`.
    """
    arguments = together.items_of(statement.value) if isinstance(statement.value, ast.Call) else ()
    for argument in arguments:
        position = _defined(before, argument.id) if isinstance(argument, ast.Name) else None
        if position is None:
            continue
        function = before[position]
        if not _is_small(function) or counts[function.name] != 1:
            continue
        (inside,) = function.body
        assert isinstance(inside, ast.Return)
        small = exprs.lambda_(parameters(function.args), _value(inside))
        value = substituted(statement.value, {function.name: small})
        if len(indent + _start(statement) + flat(value)) <= WIDTH:
            del before[position]
            equations = [*equations_of(inside), *equations_of(statement)]
            statement = changed(statement, value=value, equations=equations)
    return statement


def _defined(before: Sequence[ast.stmt], name: str) -> int | None:
    """Return the position of the function of that name, if it is close to its use, or None."""
    for position in range(len(before) - 1, max(len(before) - 1 - FAR, -1), -1):
        statement = before[position]
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return position
    return None


def _is_small(statement: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement is an undecorated function that returns one short expression."""
    match statement:
        case ast.FunctionDef(args=named, body=[ast.Return(ast.expr() as value)], decorator_list=[]):
            return all(map(exprs.is_identifier, parameters(named))) and _steps(value) <= MOST_STEPS
        case _:
            return False


def _without_readings(body: Sequence[ast.stmt], indent: str) -> list[ast.stmt]:
    """Remove names for parts of arguments (`params["w"]`) that are read once.

    Short parts that do not break a line may be read up to `FEW` times. Reading a part has no
    effect.
    """
    counts = Counter(names_read(body))
    short: dict[str, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], value) if _reads_part(statement):
                most = FEW if len(flat(value)) <= SHORT else 1
                if counts[name] <= most:
                    short[name] = value
            case _:
                pass
    if not short:
        return list(body)
    for name in _making_long(body, indent, short):
        if counts[name] > 1:
            short.pop(name, None)
    kept = (part for part in body if not _named(part) in short)
    return rewritten(kept, lambda expr: substituted(expr, short))


def _named(statement: ast.stmt) -> str:
    """Return the name that a statement gives to one value, or an empty string."""
    match statement:
        case ast.Assign([ast.Name(name)]):
            return name
        case _:
            return ""


def _making_long(
    body: Sequence[ast.stmt], indent: str, values: dict[str, ast.expr]
) -> Iterator[str]:
    """Yield the names whose values would break a statement over more lines."""
    for statement in body:
        if isinstance(statement, _Valued):
            read = {name for name in names_read([statement]) if name in values}
            if read:
                longer = rewritten([statement], lambda expr: substituted(expr, values))
                if height([statement], indent) < height(longer, indent):
                    yield from read
        else:
            yield from _making_long(contents(statement)[1], indent + STEP, values)


def _reads_part(statement: ast.Assign) -> bool:
    value = statement.value
    while isinstance(value, ast.Subscript | ast.Attribute):
        value = value.value
    is_part = isinstance(value, ast.Name) and not is_atom(statement.value)
    return is_part and not equations_of(statement)


def _within(statement: ast.stmt, indent: str, names: _Names) -> ast.stmt:
    inner = indent + STEP
    match statement:
        case ast.FunctionDef():
            used = names.used if indent else names.used | _names_of(statement)
            own = _Names(names.functions, used)
            unpacked = together.starred(together.returned_whole(statement.body), used, mostly=True)
            body = _inlined(unpacked, inner, own)
            body = together.returned(together.unread(together.starred(body, used)), names.functions)
            shorter = changed(statement, body=body)
            return together.with_rest(shorter, used) if indent else shorter
        case ast.With() | ast.For():
            return changed(statement, body=_inlined(statement.body, inner, names))
        case _:
            return statement


def _taking(
    before: list[ast.stmt], statement: _Valued, counts: Counter[str], indent: str
) -> _Valued:
    """Return `statement` with the values of previous statements inlined, while it stays readable.

    These statements are removed from `before`.
    """
    while (position := _last_value(before)) is not None:
        assignment = before[position]
        assert isinstance(assignment, ast.Assign)
        name = _named(assignment)
        if counts[name] != 1 or not _reached_first(_value(statement), name):
            break
        value = substituted(statement.value, {name: assignment.value})
        equations = [*equations_of(assignment), *equations_of(statement)]
        taking = changed(statement, value=value, equations=equations)
        is_returned = isinstance(statement, ast.Return) and value is assignment.value
        if not is_returned and (
            getattr(assignment, "user_named", False)
            or not _reads_well(statement, taking, assignment.value, indent)
        ):
            break
        del before[position]
        statement = taking
    return statement


def _last_value(before: Sequence[ast.stmt]) -> int | None:
    """Return the position of the last statement other than a function, if it names one value.

    Definitions of functions create no equations, unless a decorator calls them.
    """
    for position in range(len(before) - 1, -1, -1):
        statement = before[position]
        if isinstance(statement, ast.FunctionDef) and not getattr(statement, "runs", False):
            continue
        return position if _named(statement) and equations_of(statement) else None
    return None


def _reads_well(before: _Valued, statement: _Valued, moved: ast.expr, indent: str) -> bool:
    """Return whether a statement stays readable, and takes no more lines, with `moved` inlined."""
    value = _value(statement)
    return (
        (
            len(indent + _start(statement) + flat(value)) <= WIDTH
            or height([statement], indent) <= height([before], indent)
        )
        and _steps(value) <= MOST_STEPS
        and _depth(value) <= DEEPEST
        and not isinstance(moved, ast.IfExp | ast.Lambda | _COLLECTIONS)
    )


_COLLECTIONS = ast.Tuple | ast.List | ast.Set | ast.Dict


def _start(statement: _Valued) -> str:
    """Return the text before a statement's value; for an effect, that of a `return`."""
    return f"{flat(statement.targets[0])} = " if isinstance(statement, ast.Assign) else "return "


def _does(expr: ast.AST) -> bool:
    """Return whether evaluating an expression, apart from its parts, may create equations."""
    match expr:
        case _ if is_atom(expr):
            return False
        case ast.Attribute(_, name) | ast.Subscript(ast.Attribute(_, name)):
            return name not in _HARMLESS
        case _:
            return isinstance(expr, _STEPS)


def _reached_first(expr: ast.AST, name: str) -> bool:
    """Return whether a name is read before anything is computed."""
    for part, called in _evaluated(expr, False):
        if isinstance(part, ast.Name) and part.id == name:
            return True
        if _does(part) and not called:
            return False
    return False


def _evaluated(expr: ast.AST, called: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield expressions in the order of evaluation, and whether each is a method being called."""
    parts = () if is_atom(expr) else parts_of(expr)
    for index, part in enumerate(parts):
        is_method = isinstance(expr, ast.Call) and index == 0 and isinstance(part, ast.Attribute)
        yield from _evaluated(part, is_method)
    yield expr, called


_STEPS = ast.Call | ast.BinOp | ast.Compare | ast.UnaryOp | ast.Subscript


def _steps(expr: ast.AST) -> int:
    """Count operations and calls; a collection counts as its item with the most of them."""
    if is_atom(expr) or _is_part(expr):
        return 0
    inside = map(_steps, parts_of(expr))
    if isinstance(expr, _COLLECTIONS):
        return max(inside, default=0)
    return sum(inside) + isinstance(expr, _STEPS)


def _is_part(expr: ast.AST) -> bool:
    """Return whether an expression reads a part of an argument: `params["w"]`."""
    if not isinstance(expr, ast.Subscript) or not all(map(is_atom, indices_of(expr))):
        return False
    return is_atom(expr.value) or _is_part(expr.value)


def _depth(expr: ast.AST) -> int:
    """Count nested brackets; those of a chain `x.sum().reshape()` are side by side."""
    if is_atom(expr) or _is_part(expr):
        return 0
    match expr:
        case ast.Call(function):
            inside = max(map(_depth, together.items_of(expr)), default=0)
            return max(_depth(function), inside + 1)
        case ast.Subscript(value):
            inside = max(map(_depth, indices_of(expr)), default=0)
            return max(_depth(value), inside and inside + 1)
        case ast.BinOp() | ast.Compare():
            level = precedence(expr)
            return max(_depth(part) + (precedence(part) < level) for part in parts_of(expr))
        case _:
            return max(map(_depth, parts_of(expr)), default=0)


def handled(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names whose values Python itself handles, by an operator, a method or an index.

    The values of other names are only passed to public functions.
    """
    names: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(_, value) | ast.Expr(value):
                names |= _handled(value, True)
            case ast.Return(ast.expr() as value):
                names |= _handled(value, False)
            case _:
                names |= handled(contents(statement)[1])
    return names


def _handled(expr: ast.AST, outer: bool) -> set[str]:
    match expr:
        case ast.Name(name):
            return {name} if outer else set()
        case ast.Call(function):
            public = "." in exprs.dotted(function)
            inside = [_handled(part, not public) for part in together.items_of(expr)]
            return set().union(_handled(function, True), *inside)
        case ast.Tuple() | ast.List() | ast.Set() | ast.keyword() | ast.Starred():
            return set().union(*(_handled(part, outer) for part in parts_of(expr)))
        case _:
            return set().union(*(_handled(part, True) for part in parts_of(expr)))
