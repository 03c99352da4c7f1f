"""Finds runs of equations that a program repeats in loops, branches and derivative rules.

A first text collects the programs; their repeated runs become functions of the module, and the text
is written again with calls of them. As in `folding`, no equation moves, and the whole text is
compared with the program at the end.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import maker
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.idioms import read_outside
from jaxsight_source.folding.steps import (
    SHARED,
    FoldedStep,
    Item,
    Operand,
    Place,
    flow_of,
    places_of,
)
from jaxsight_source.folding.tokens import EquationNumbers
from jaxsight_source.text.names import identifier

SHORTEST = 12
"""The minimum number of equations of a function.

A choice: twice that of a helper, as the function has no name of the user's to say what it does.
"""

_LEAST_SAVED = 10
"""The minimum number of lines that a function must save, counting a line per equation, one per six
arguments of a call, and four for its head, `return` and blank lines.

A choice: less divides a text that fits on a screen, more leaves repetitions of a few equations.
"""

_MOST = 40
"""The maximum number of functions for repeated runs.

A choice: each is found by a search of the whole text, and saves less than the one before.
"""


_Numbers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

_Flow: TypeAlias = tuple[tuple[Place | None, ...], ...]
"""For each operand of a run, the step and result of the run that computes it, or None."""


@dataclass(eq=False, slots=True)
class Listed:
    """Items of a program that was written, with the expressions of its global operands.

    An operand is global if it is a number or has the same name in the whole module.
    """

    equations: Sequence[Any]
    outputs: Sequence[object]
    global_exprs: dict[int, ast.expr]
    around: tuple[Listed, int] | None = None
    """The enclosing program, and the position of the item there."""
    at: int = 0
    """The position of the item that is being written."""


@dataclass(eq=False, slots=True)
class Repeat:
    """A run of equations that occurs at several places."""

    name: str
    tokens: tuple[int, ...]
    flow: Hashable
    inputs: tuple[Place, ...]
    """The first reads of values from outside."""
    fixed: tuple[tuple[Place, ast.expr], ...]
    """The first reads of values that are the same at all places, with their expressions."""
    outputs: tuple[Place, ...]
    """The results that are read outside, at one of the places at least."""
    again: tuple[tuple[Place, Place], ...]
    """Further reads of values from outside, each with the first read."""


@dataclass(slots=True)
class Repeats:
    """The repeats of a module, by the token of their first equation."""

    by_first: dict[int, list[Repeat]] = field(default_factory=lambda: defaultdict(list))
    numbers: EquationNumbers = field(default_factory=EquationNumbers)
    """The numbers of the equations."""


def listed(
    equations: Sequence[Any], outputs: Sequence[object], read: Callable[[Any], ast.expr | None]
) -> Listed:
    """Return a program as a list, before it is written.

    Args:
        read: returns the expression of a variable that is global in the module, or None.
    """
    global_exprs: dict[int, ast.expr] = {}
    for key, atom in read_outside(equations).items():
        expr = read(atom)
        if expr is not None:
            global_exprs[key] = expr
    return Listed(list(equations), list(outputs), global_exprs)


def repeats_of(programs: Sequence[Listed], numbers: EquationNumbers) -> Repeats:
    """Return the runs that programs repeat, those that save the most first."""
    tokens: list[int] = []
    where: list[tuple[Listed, int]] = []
    weights: list[int] = [0]
    alone = itertools.count(-1, -1)
    begins: list[int] = []
    for program in programs:
        begins.append(len(tokens))
        for at, equation in enumerate(program.equations):
            token = _token(equation, numbers)
            tokens.append(next(alone) if token is None else token)
            where.append((program, at))
            weights.append(_weight(equation))
        tokens.append(next(alone))  # no run extends into the next program
        where.append((program, len(program.equations)))
        weights.append(0)
    sequence = np.array(tokens, np.int64)
    total = np.cumsum(weights)
    repeats = Repeats(numbers=numbers)
    for _ in range(_MOST):
        best = _best(sequence, where, total)
        if best is None:
            break
        repeat, starts = best
        repeats.by_first[repeat.tokens[0]].append(repeat)
        size = len(repeat.tokens)
        gone = [range(start, start + size) for start in starts]
        again = {
            (id(program), at) for start in starts[1:] for program, at in where[start : start + size]
        }
        for program, begin in zip(programs, begins, strict=True):
            if _is_within(program, again):
                gone.append(range(begin, begin + len(program.equations)))
        for places in gone:
            sequence[places.start : places.stop] = list(itertools.islice(alone, len(places)))
    return repeats


def _is_within(program: Listed, positions: set[tuple[int, int]]) -> bool:
    """Return whether a program was written for one of these equations, directly or not."""
    around = program.around
    while around is not None:
        if (id(around[0]), around[1]) in positions:
            return True
        around = around[0].around
    return False


def _weight(equation: Equation | FoldedStep) -> int:
    """Return the number of equations that are written for an item."""
    if isinstance(equation, FoldedStep):
        return 1
    name = equation.primitive.name
    if name in ("jit", "pjit", "custom_jvp_call", "custom_vjp_call"):
        return 1  # shared functions, which are written once in any case
    inside = (part.jaxpr.eqns for part in inner_jaxprs(equation))
    return 1 + sum(sum(map(_weight, equations)) for equations in inside)


def _token(equation: Item, numbers: EquationNumbers) -> int | None:
    """Return a number that is equal for equal equations, or None for those that are never moved."""
    return None if isinstance(equation, FoldedStep) or equation.effects else numbers.of(equation)


def _best(
    numbers: _Numbers, where: Sequence[tuple[Listed, int]], total: _Numbers
) -> tuple[Repeat, list[int]] | None:
    """Return the repeat that saves the most, and its start positions.

    `total` counts the equations before each position.
    """
    candidates = sorted(_candidates(numbers, total), key=lambda candidate: -candidate[0])
    for estimate, length, starts in candidates[:_MOST]:
        if estimate < _LEAST_SAVED:
            break
        by_flow: dict[_Flow, list[int]] = defaultdict(list)
        for start in sorted(starts):
            program, at = where[start]
            flow = flow_of(program.equations[at : at + length])
            if not by_flow[flow] or start >= by_flow[flow][-1] + length:
                by_flow[flow].append(start)
        best: tuple[int, Repeat, list[int]] | None = None
        for flow, own in by_flow.items():
            if len(own) < 2:
                continue
            runs = [(*where[start], length) for start in own]
            repeat = _repeat(runs, tuple(map(int, numbers[own[0] : own[0] + length])), flow)
            if repeat is None:
                continue
            arguments = len(repeat.inputs) + len(repeat.outputs)
            weight = int(total[own[0] + length] - total[own[0]])
            saved = (len(own) - 1) * weight - len(own) * (1 + arguments // 6) - 4
            if saved >= _LEAST_SAVED and (best is None or saved > best[0]):
                best = saved, repeat, own
        if best is not None:
            return best[1], best[2]
    return None


def _candidates(numbers: _Numbers, total: _Numbers) -> Iterator[tuple[int, int, list[int]]]:
    """Yield repeated substrings: the maximum number of equations saved, length, start positions."""
    order, common = _suffixes(numbers)
    stack: list[tuple[int, int]] = []
    for index in range(len(common) + 1):
        shared = int(common[index]) if index < len(common) else 0
        begin = index
        while stack and stack[-1][1] > shared:
            begin, length = stack.pop()
            weight = int(total[order[begin] + length] - total[order[begin]])
            if weight >= SHORTEST:
                starts = [int(at) for at in order[begin : index + 1]]
                yield (len(starts) - 1) * weight, length, starts
        if shared and (not stack or stack[-1][1] < shared):
            stack.append((begin, shared))


def _suffixes(numbers: _Numbers) -> tuple[_Numbers, list[int]]:
    """Return the sorted suffixes, and the length of the common prefix of each with the next."""
    size = len(numbers)
    rank = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    width = 1
    while True:
        second = np.full(size, -1, np.int64)
        second[: size - width] = rank[width:]
        order = np.lexsort((second, rank))
        differs = (np.diff(rank[order]) != 0) | (np.diff(second[order]) != 0)
        sorted_rank = np.concatenate([[0], np.cumsum(differs)])
        rank = np.empty(size, np.int64)
        rank[order] = sorted_rank
        if int(sorted_rank[-1]) == size - 1 or width >= size:
            break
        width *= 2
    common = [0] * (size - 1)
    tokens = numbers.tolist()
    height = 0
    for at in range(size):
        index = int(rank[at])
        if index == size - 1:
            height = 0
            continue
        following = int(order[index + 1])
        while (
            at + height < size
            and following + height < size
            and tokens[at + height] == tokens[following + height]
        ):
            height += 1
        common[index] = height
        height = max(height - 1, 0)
    return order, common


def _repeat(
    runs: Sequence[tuple[Listed, int, int]], tokens: tuple[int, ...], flow: _Flow
) -> Repeat | None:
    """Return runs as a repeat, or None if they read different numbers."""
    rows = [program.equations[at : at + length] for program, at, length in runs]
    inputs: dict[Hashable, Place] = {}
    fixed: dict[Hashable, tuple[Place, ast.expr]] = {}
    firsts: dict[Hashable, Place] = {}
    again: list[tuple[Place, Place]] = []
    for position, equation in enumerate(rows[0]):
        for slot, atom in enumerate(equation.invars):
            if is_literal(atom) or flow[position][slot] is not None:
                continue
            row = [run[position].invars[slot] for run in rows]
            key = tuple(map(id, row))
            again.append(((position, slot), firsts.setdefault(key, (position, slot))))
            exprs = [
                program.global_exprs.get(id(var))
                for (program, _, _), var in zip(runs, row, strict=True)
            ]
            if exprs[0] is not None and all(expr == exprs[0] for expr in exprs):
                fixed.setdefault(key, ((position, slot), exprs[0]))
            elif any(expr is not None and not _is_name(expr) for expr in exprs):
                return None
            else:
                inputs.setdefault(key, (position, slot))
    outputs: dict[Place, None] = {}
    for program, at, length in runs:
        for read in _read_outside(program.equations, program.outputs, at, length):
            outputs[read] = None
    if not outputs:
        return None
    return Repeat(
        _name(rows[0]),
        tokens,
        flow,
        tuple(inputs.values()),
        tuple(fixed.values()),
        tuple(sorted(outputs)),
        tuple(pair for pair in again if pair[0] != pair[1]),
    )


def _is_name(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name)


def _read_outside(
    equations: Sequence[Item], outputs: Sequence[object], at: int, length: int
) -> Iterator[Place]:
    """Yield the results of a run that other equations read or the program returns."""
    own = places_of(equations[at : at + length])
    for atom in (
        *outputs,
        *(atom for equation in equations[at + length :] for atom in equation.invars),
    ):
        if not is_literal(atom) and id(atom) in own:
            yield own[id(atom)]


def _name(run: Sequence[Equation]) -> str:
    """Return a name for the shared function: that of the maker of many of its equations."""
    counts = Counter(maker(equation).rpartition(".")[2] for equation in run)
    for name, count in counts.most_common():
        if name.isidentifier() and count * _LEAST_MADE >= len(run):
            return identifier(name, "shared")
    return "shared"


_LEAST_MADE = 3
"""At least one in this many equations must be created by the function that provides the name: of a
smaller part, the name would say what most of the code does not do."""


def with_repeats(
    equations: Sequence[Any],
    outputs: Sequence[object],
    repeats: Repeats,
    around: Sequence[Repeat],
    read: Callable[[Any], ast.expr | None],
) -> list[Any]:
    """Return the equations with steps in place of repeats.

    Args:
        outputs: the results of the program.
        around: the repeats that are being written.
        read: returns the expression of a variable that is global in the module, or None.
    """
    tokens = [_token(equation, repeats.numbers) for equation in equations]
    done: list[Any] = []
    position = 0
    while position < len(equations):
        for repeat in repeats.by_first.get(tokens[position], ()):  # type: ignore[arg-type]
            stop = position + len(repeat.tokens)
            if (
                repeat not in around
                and tuple(tokens[position:stop]) == repeat.tokens
                and flow_of(equations[position:stop]) == repeat.flow
                and _reads_so(repeat, equations[position:stop], read)
                and set(_read_outside(equations, outputs, position, stop - position))
                <= set(repeat.outputs)
            ):
                run = list(equations[position:stop])
                invars = [run[at].invars[slot] for at, slot in repeat.inputs]
                outvars = [run[at].outvars[output] for at, output in repeat.outputs]
                source, none = run[0].source_info, frozenset[object]()
                done.append(FoldedStep(SHARED, repeat, 0, invars, outvars, run, none, source))
                position = stop
                break
        else:
            done.append(equations[position])
            position += 1
    return done


def _reads_so(repeat: Repeat, run: Sequence[Item], read: Callable[[Any], ast.expr | None]) -> bool:
    """Return whether a run has equal operands where the repeat has, and the same global ones."""

    def var(position: Place) -> Operand:
        return run[position[0]].invars[position[1]]

    if any(var(read_again) is not var(first) for read_again, first in repeat.again):
        return False
    if any(read(var(position)) != expr for position, expr in repeat.fixed):
        return False
    return all(
        (expr := read(var(position))) is None or _is_name(expr) for position in repeat.inputs
    )


def fixed_values(step: FoldedStep) -> Mapping[int, tuple[Operand, ast.expr]]:
    """Return the global operands that the run reads, by the variable's id."""
    repeat: Repeat = step.family
    values = {}
    for (position, slot), expr in repeat.fixed:
        var = step.members[position].invars[slot]
        values[id(var)] = var, expr
    return values
