"""The user's names for values, from the assignments that were running when equations were created.

JAX records the user's frames of each equation. An equation is the value of `h = block(x)` if it is
the last one that this expression created. That does not apply to derivatives: the rules of
primitives create additional equations, so there only an expression that created a single equation
names its value.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight_source.compat.jaxpr_types import Aval, Equation
from jaxsight_source.compat.locations import Place, is_backward, is_derivative, places
from jaxsight_source.compat.staging import is_dropped
from jaxsight_source.files.ours import OURS

_FRAMES = 8
"""The number of the user's frames that are examined: names farther out are of other values."""

Fits = Callable[[str, Place, Aval], bool]
"""Returns whether the expression at a place in a file had values of a type."""


def user_names(
    equations: Sequence[Equation], *, derivative: bool = False, fits: Fits | None = None
) -> dict[int, tuple[str, ...]]:
    """Return the user's names for the results of equations, by position.

    Args:
        equations: all of a program, including dead ones: the last live equation of an expression
            need not be its value.
        derivative: whether the program is a derivative; only certain names are returned then.
        fits: returns whether an expression had values of a type, if types were recorded.
    """
    named: dict[int, tuple[str, ...]] = {}
    users: dict[int, list[int]] = defaultdict(list)
    """The equations that read each variable, by the variable's id."""
    for index, equation in enumerate(equations):
        for atom in equation.invars:
            users[id(atom)].append(index)
    for run in _runs(equations):
        if derivative:
            if (value := _certain(equations, run, fits)) is not None:
                named[value] = run.targets
            continue
        last = run.members[-1]
        results = equations[last].outvars
        if len(results) == len(run.targets) and _escaping(equations, run.members, users) <= set(
            map(id, results)
        ):
            # Inner runs come first, so outer names win.
            named[last] = run.targets
    return named


def _certain(equations: Sequence[Equation], run: _Run, fits: Fits | None) -> int | None:
    """Return the only equation of a run, in a derivative, that can be the value.

    Return None if there are several or none.
    """
    if fits is not None and len(run.targets) == 1:
        candidates = [
            index
            for index in run.members
            if len(equations[index].outvars) == 1
            and fits(*run.place, equations[index].outvars[0].aval)
        ]
    else:
        candidates = [
            index
            for index in run.members
            if is_derivative(equations[index]) and not is_backward(equations[index])
        ]
        candidates = candidates if len(run.members) == 1 else []
    if len(candidates) == 1 and len(equations[candidates[0]].outvars) == len(run.targets):
        return candidates[0]
    return None


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive equations that one evaluation of an expression created, and its target names."""

    place: tuple[str, Place]
    targets: tuple[str, ...]
    members: list[int]


def _runs(equations: Sequence[Equation]) -> Iterator[_Run]:
    """Yield the runs of equations, inner ones before those around them."""
    values = _Values()
    open_runs: dict[_Chain, _Run] = {}
    for index, equation in enumerate(equations):
        here: dict[_Chain, _Run] = {}
        for chain, targets in values.enclosing(equation):
            run = open_runs.pop(chain, None)
            if run is None:
                run = _Run(chain.frames[0], targets, [])
            run.members.append(index)
            here[chain] = run
        yield from open_runs.values()
        open_runs = here
    yield from open_runs.values()


@dataclass(frozen=True, eq=False, slots=True)
class _Chain:
    """A frame and those around it, innermost first; equal chains are the same object."""

    frames: tuple[tuple[str, Place], ...]


class _Values:
    """The values of assignments whose evaluation created equations."""

    def __init__(self) -> None:
        self._around: dict[int, tuple[object, list[tuple[_Chain, tuple[str, ...]]]]] = {}
        """By the id of an equation's places, which are kept alive."""
        self._chains: dict[tuple[tuple[str, Place], ...], _Chain] = {}
        self._bound: dict[str, dict[Place, tuple[str, ...]]] = {}
        """The targets of each file."""

    def enclosing(self, equation: Equation) -> list[tuple[_Chain, tuple[str, ...]]]:
        """Return the values around an equation, innermost first, with their targets."""
        at = places(equation, _FRAMES)
        known = self._around.get(id(at))
        if known is None:
            user = itertools.takewhile(lambda frame: not frame[0].startswith(OURS), at)
            frames = tuple(user)
            known = self._around[id(at)] = at, []
            for depth, (file, place) in enumerate(frames):
                if file not in self._bound:
                    self._bound[file] = _targets(file, len(linecache.getlines(file)))
                targets = self._bound[file].get(place)
                if targets is not None:
                    chain = frames[depth:]
                    known[1].append((self._chains.setdefault(chain, _Chain(chain)), targets))
        return known[1]


def _escaping(
    equations: Sequence[Equation], members: Sequence[int], users: dict[int, list[int]]
) -> set[int]:
    """Return the ids of the results of `members` that are read by others or by nothing.

    Those that nothing reads may be results of the program.
    """
    inside = set(members)
    return {
        id(var)
        for index in members
        for var in equations[index].outvars
        if not is_dropped(var) and (id(var) not in users or not inside.issuperset(users[id(var)]))
    }


@functools.lru_cache(maxsize=256)  # files
def _targets(path: str, size: int) -> dict[Place, tuple[str, ...]]:
    """Return the names that the assignments of a file bind, by the places of their values.

    `size`, a number of lines, distinguishes an edited file from its previous version in the cache.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    names: dict[Place, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                _bind(target, value, names)
            case ast.AugAssign(target=target):
                _bind(target, node, names)
            case _:
                pass
    return names


def _bind(
    target: ast.expr, value: ast.expr | ast.stmt, names: dict[Place, tuple[str, ...]]
) -> None:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for part, part_value in zip(targets, values, strict=True):
                _bind(part, part_value, names)
        case ast.Tuple(elts=targets), _ if all(isinstance(part, ast.Name) for part in targets):
            names[_place(value)] = tuple(part.id for part in targets if isinstance(part, ast.Name))
        case ast.Name(id=name), _:
            names[_place(value)] = (name,)
        case _:
            pass


def _place(node: ast.expr | ast.stmt) -> Place:
    return (
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )
