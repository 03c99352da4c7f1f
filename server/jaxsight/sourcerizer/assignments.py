"""What the user called a value: read off the assignments that JAX says were running when equations were made.

An equation is the value of `h = block(x)` when it is the last one that this expression made. Of a derivative that is not so: there the
rules of primitives make more, so only an expression that made a single equation gives its name.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxsight.sourcerizer.compat.sources import is_backward, is_derivative
from jaxsight.tracer.compat.jaxprs import Location, locations

_OURS = str(Path(__file__).parent.parent)

_FRAMES = 8
"""How many frames of the user's are looked at."""

Place = tuple[int, int, int, int]
"""Line, column, last line and its column."""


def user_names(equations: Sequence[Any], *, derivative: bool) -> dict[int, tuple[str, ...]]:
    """The user's names for the results of equations, by position; those of a program that is a `derivative` with care."""
    groups: dict[tuple[str, Place], list[int]] = defaultdict(list)
    names: dict[tuple[str, Place], tuple[str, ...]] = {}
    for index, equation in enumerate(equations):
        if derivative and is_backward(equation):
            continue
        for at in _frames(equation):
            place = (at.line, at.column, at.end_line, at.end_column)
            targets = _targets(at.file, len(linecache.getlines(at.file))).get(place)
            if targets is not None:
                groups[at.file, place].append(index)
                names[at.file, place] = targets
    named: dict[int, tuple[str, ...]] = {}
    users = _users(equations)
    for key, members in groups.items():
        last = members[-1]
        results = equations[last].outvars
        if len(results) != len(names[key]) or (derivative and len(members) > 1):
            continue
        if _escaping(equations, members, users) <= set(map(id, results)):
            # The frames of an equation come innermost first, and so do the groups: the outer names win.
            named[last] = names[key]
    return named


def is_of_derivative(equations: Sequence[Any]) -> bool:
    """Whether a program was made by differentiating another."""
    return any(map(is_derivative, equations))


def _frames(equation: Any) -> Iterator[Location]:
    """The frames of the user's that made an equation, innermost first, up to the call of what writes it."""
    ours = lambda at: not at.file.startswith(_OURS)  # noqa: E731
    return itertools.takewhile(ours, itertools.islice(locations(equation), _FRAMES))


def _users(equations: Sequence[Any]) -> dict[int, list[int]]:
    """By variable, the equations that read it."""
    users: dict[int, list[int]] = defaultdict(list)
    for index, equation in enumerate(equations):
        for atom in equation.invars:
            users[id(atom)].append(index)
    return users


def _escaping(
    equations: Sequence[Any], members: Sequence[int], users: dict[int, list[int]]
) -> set[int]:
    """Results of some equations that others read, or none (then they are results of the program)."""
    inside = set(members)
    return {
        id(var)
        for index in members
        for var in equations[index].outvars
        if id(var) not in users or not inside.issuperset(users[id(var)])
    }


@functools.lru_cache(maxsize=256)
def _targets(path: str, size: int) -> dict[Place, tuple[str, ...]]:
    """The names that the assignments of a file bind, by where their values stand. `size` tells an edited file from the one before."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[Place, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                _bind(target, value, found)
            case ast.AugAssign(target=target):
                _bind(target, node, found)
            case _:
                pass
    return found


def _bind(target: ast.expr, value: ast.expr | ast.stmt, found: dict[Place, tuple[str, ...]]) -> None:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, other in zip(targets, values, strict=True):
                _bind(one, other, found)
        case ast.Tuple(elts=targets), _ if all(isinstance(each, ast.Name) for each in targets):
            found[_place(value)] = tuple(each.id for each in targets if isinstance(each, ast.Name))
        case ast.Name(id=name), _:
            found[_place(value)] = (name,)
        case _:
            pass


def _place(node: ast.expr | ast.stmt) -> Place:
    return (
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )
