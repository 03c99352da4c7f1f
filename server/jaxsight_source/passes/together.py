"""Writes values that are only passed on together under one name, as `first, *rest = f(x)`.

Works on the statements of one function. The computations and their order stay the same.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from jaxsight_source.text import exprs, statements
from jaxsight_source.text.exprs import changed, dotted, is_atom, tuple_
from jaxsight_source.text.layout import flat, parameters
from jaxsight_source.text.names import unused, without_number

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

    def note(self, expr: ast.AST) -> None:
        items = items_of(expr)
        before = ""
        for part in items:
            name = part.id if type(part) is ast.Name and part.id in self.of else ""
            if name:
                self.parts[name] += 1
                if before:
                    self.pairs[before, name] += 1
                if len(items) == 1:
                    self.single[name] += 1
            before = name
        for part in exprs.parts_of(expr):
            if not is_atom(part):
                self.note(part)


def items_of(expr: ast.AST) -> Sequence[ast.AST]:
    """Return the items of a collection or a call."""
    match expr:
        case ast.Call(_, args, keywords):
            return [*args, *keywords]
        case ast.Tuple(items) | ast.List(items) | ast.Set(items):
            return items
        case _:
            return ()


def starred(body: Sequence[ast.stmt], used: set[str], *, mostly: bool = False) -> list[ast.stmt]:
    """Return a function's statements, with one name for values that are only passed on together.

    Args:
        used: names that are in use; new ones are added.
        mostly: skip results most of which would keep their names.
    """
    own = [
        statement for statement in statements.own_statements(body) if _is_taking_apart(statement)
    ]
    if not own:
        return list(body)
    together = _together(body, statements.names_assigned(own))
    runs: dict[str, tuple[list[str], ast.expr]] = {}
    others: dict[int, ast.stmt | None] = {}
    for statement in own:
        targets, value = statement.targets[0].elts, statement.value
        run = _longest(list(map(statements.value_name, targets)), together)
        if len(targets) == 1 and together(flat(targets[0]), ""):
            run = [flat(targets[0])]
        if len(run) == len(targets) and is_atom(value):
            others[id(statement)] = None
            runs[run[0]] = run, value
            continue
        if len(run) < (FEWEST_PARTS if is_atom(value) else FEWEST) or (
            mostly and 2 * len(run) < len(targets)
        ):
            continue
        common = ast.Name(_fresh(_plural(run), used))
        target: ast.expr = common
        if len(run) == len(targets):
            if not _gives_sequence(value):
                continue
        else:
            start = list(map(statements.value_name, targets)).index(run[0])
            after = targets[start + len(run) :]
            target = tuple_([*targets[:start], ast.Starred(common), *after])
        others[id(statement)] = changed(statement, targets=[target])
        runs[run[0]] = run, common
    if not others:
        return list(body)
    return statements.rewritten(body, lambda expr: _passing(expr, runs), replaced=others)


def _together(body: Sequence[ast.stmt], names: Iterable[str]) -> Callable[[str, str], bool]:
    """Return a predicate on names: whether two of them are only read as consecutive items.

    For a single name, it returns whether that is only read as the only item.
    """
    reads, assigned = Counter(statements.names_read(body)), Counter(statements.names_assigned(body))
    passed = _Passed(frozenset(names))
    for expr in statements.expressions(body):
        passed.note(expr)

    def together(name: str, after: str) -> bool:
        times = passed.pairs[name, after] if after else passed.single[name]
        return times > 0 and all(
            reads[part] == passed.parts[part] == times and assigned[part] <= 1
            for part in (name, after or name)
        )

    return together


def with_rest(function: ast.FunctionDef, used: set[str]) -> ast.FunctionDef:
    """Return a function with `*rest` for its last parameters if these are only passed on together.

    All calls of the function must use positional arguments only.
    """
    names = parameters(function.args)
    if len(names) < FEWEST_PARTS or not all(map(exprs.is_identifier, names)):
        return function
    together = _together(function.body, names)
    count = 1
    while count < len(names) and together(names[-1 - count], names[-count]):
        count += 1
    if count < FEWEST_PARTS:
        return function
    run = names[-count:]
    common = _fresh(_plural(run), used)
    runs: dict[str, tuple[list[str], ast.expr]] = {run[0]: (run, ast.Name(common))}
    body = statements.rewritten(function.body, lambda expr: _passing(expr, runs))
    return changed(function, args=exprs.arguments([*names[:-count], f"*{common}"]), body=body)


def _is_taking_apart(statement: ast.stmt) -> TypeGuard[Any]:
    """Return whether a statement unpacks a value into names that are not the user's."""
    match statement:
        case ast.Assign([ast.Tuple(targets)], value):
            is_read = is_atom(value) and not statements.equations_of(statement)
            return (
                (is_read or isinstance(value, ast.Call | ast.Tuple | ast.List))
                and not getattr(statement, "user_named", False)
                and not any(isinstance(part, ast.Starred) for part in targets)
            )
        case _:
            return False


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


def _gives_sequence(value: ast.expr) -> bool:
    """Return whether a value is known not to be an array, whose unpacking creates equations."""
    match value:
        case ast.Call(function):
            path = dotted(function)
            return bool(path) and ("." not in path or path in _LOOPS)
        case _:
            return isinstance(value, ast.Tuple | ast.List)


def _plural(run: Sequence[str]) -> str:
    bases = set(map(without_number, run))
    return _PLURALS.get(bases.pop(), "rest") if len(bases) == 1 else "rest"


def _fresh(base: str, used: set[str]) -> str:
    name = unused(base, used.__contains__)
    used.add(name)
    return name


def _passing(expr: Any, runs: Mapping[str, tuple[list[str], ast.expr]]) -> Any:
    """Return an expression with `*rest` for each run of names."""
    if isinstance(expr, ast.Lambda | ast.IfExp) or is_atom(expr):
        return expr
    expr = exprs.mapped(expr, lambda part: _passing(part, runs))
    match expr:
        case ast.Call(_, args):
            return changed(expr, args=_with_stars(args, runs))
        case ast.Tuple(items) | ast.List(items):
            return changed(expr, elts=_with_stars(items, runs))
        case _:
            return expr


def _with_stars(
    parts: list[ast.expr], runs: Mapping[str, tuple[list[str], ast.expr]]
) -> list[ast.expr]:
    starred_parts: list[ast.expr] = []
    position = 0
    while position < len(parts):
        run, common = runs.get(statements.value_name(parts[position]), ([], exprs.NONE))
        if run and list(map(statements.value_name, parts[position : position + len(run)])) == run:
            starred_parts.append(ast.Starred(common))
            position += len(run)
        else:
            starred_parts.append(parts[position])
            position += 1
    return starred_parts


def returned_whole(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a loop's result directly, as `return lax.scan(…)`, if all its parts are returned."""
    match list(body):
        case [
            *before,
            ast.Assign([ast.Tuple() as targets], ast.Call(function) as value) as loop,
            ast.Return(ast.Tuple() as results) as last,
        ] if (
            dotted(function) in _LOOPS
            and flat(targets) == flat(results)
            and statements.UNREAD not in map(flat, targets.elts)
        ):
            return [
                *before,
                statements.return_(
                    value, [*statements.equations_of(loop), *statements.equations_of(last)]
                ),
            ]
        case same:
            return same


def returned(body: Sequence[ast.stmt], functions: Collection[str]) -> list[ast.stmt]:
    """Return the statements of a function that returns a whole tuple without unpacking it.

    Args:
        functions: the module's own functions, which return tuples.
    """
    match list(body):
        case [
            *before,
            ast.Return(ast.Tuple([ast.Starred(ast.Call(function) as value)])) as last,
        ] if dotted(function) in functions or dotted(function) in _LOOPS:
            return [*before, statements.return_(value, statements.equations_of(last))]
        case same:
            return same


def unread(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function without names for unread results: `first, *_ = f(x)`."""
    counts = Counter(statements.names_read(body))
    others: dict[int, ast.stmt | None] = {}
    for statement in statements.own_statements(body):
        match statement:
            case ast.Assign([ast.Tuple() as before], value):
                targets = _read_alone(before, counts)
                if flat(targets) == f"(*{statements.UNREAD},)" and is_atom(value):
                    others[id(statement)] = None
                elif flat(targets) != flat(before):
                    others[id(statement)] = changed(statement, targets=[targets])
            case _:
                pass
    return statements.rewritten(body, replaced=others) if others else list(body)


def _read_alone(targets: ast.Tuple, counts: Counter[str]) -> ast.Tuple:
    parts: list[ast.expr] = []
    for part in targets.elts:
        match part:
            case ast.Tuple():
                inside = _read_alone(part, counts)
                parts.append(_unread() if all(map(_is_unread, inside.elts)) else inside)
            case ast.Name(name):
                parts.append(part if counts[name] else _unread())
            case _:
                parts.append(part)
    last = max((i for i, part in enumerate(parts) if not _is_unread(part)), default=-1)
    starred_before = any(isinstance(part, ast.Starred) for part in parts[: last + 1])
    if len(parts) - last > 2 and not starred_before:
        parts[last + 1 :] = [ast.Starred(_unread())]
    return tuple_(parts)


def _unread() -> ast.Name:
    return ast.Name(statements.UNREAD)


def _is_unread(target: ast.expr) -> bool:
    return flat(target) in (statements.UNREAD, f"*{statements.UNREAD}")
