"""Removes axes of arrays: each axis together with those that are the same one in other arrays.

Which axes are the same follows from the equations. What an equation of another primitive reads or
returns keeps its rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxsight.wire.primitives import CUMULATIVE, ELEMENTWISE, REDUCTIONS
from jaxsight_repro.compat.retyping import retyped
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import Keys, Shrunk, Value, cheaper, of_program
from jaxsight_repro.reducing.equations.evaluation import EquationRun, read
from jaxsight_source.compat.avals import is_key
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Params
from jaxsight_source.compat.staging import stage

_Axis: TypeAlias = tuple[int, int]
"""The identity of a variable, and the position of one of its axes."""
_Linked: TypeAlias = list[tuple[Atom, int]]


def flatter(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return a candidate whose arrays have as few axes as possible."""

    def tries(candidate: Shrunk) -> Iterator[Shrunk | None]:
        groups = _removable(candidate)
        yield _without(candidate, {axis for group in groups for axis in group})
        if len(groups) > 1:
            for group in groups:
                yield _without(candidate, group)

    return checker.exhausted(candidate, lambda each: cheaper(each, tries(each)))


@dataclass(slots=True)
class _Axes:
    """Sets of axes that are the same one."""

    _parents: dict[_Axis, _Axis] = field(default_factory=dict)
    _kept: set[_Axis] = field(default_factory=set)

    def root(self, axis: _Axis) -> _Axis:
        """Return the axis that stands for those that are the same as one."""
        while (parent := self._parents.setdefault(axis, axis)) != axis:
            axis = parent
        return axis

    def link(self, axes: Sequence[_Axis]) -> None:
        for axis in axes[1:]:
            self._parents[self.root(axis)] = self.root(axes[0])

    def keep(self, axis: _Axis) -> None:
        self.root(axis)
        self._kept.add(axis)

    def removable(self) -> list[set[_Axis]]:
        """Return the sets of which no axis is kept."""
        groups: dict[_Axis, set[_Axis]] = {}
        for axis in [*self._parents]:
            groups.setdefault(self.root(axis), set()).add(axis)
        return [group for group in groups.values() if not group & self._kept]


def _removable(candidate: Shrunk) -> list[set[_Axis]]:
    axes = _Axes()
    for var in candidate.inputs:
        for axis in range(_rank(var)):
            (axes.keep if is_key(var.aval) else axes.root)((id(var), axis))
    for equation in candidate.equations:
        atoms = [*equation.invars, *equation.outvars]
        linked = [[(id(atom), axis) for atom, axis in group] for group in _linked(equation)]
        known = {axis for group in linked for axis in group}
        for group in linked:
            axes.root(group[0])
            axes.link(group)
        for atom in atoms:
            for axis in range(_rank(atom)):
                if (id(atom), axis) not in known:
                    axes.keep((id(atom), axis))
    return axes.removable()


def _rank(atom: Atom) -> int:
    return len(getattr(atom.aval, "shape", ()))


def _linked(equation: Equation) -> list[_Linked]:
    """Return the axes of operands and results that may go together."""
    params, name = equation.params, equation.primitive.name
    inputs, results = equation.invars, equation.outvars
    if name == "iota":
        (y,) = results
        return [[(y, axis)] for axis in range(_rank(y)) if axis != params["dimension"]]
    if not inputs:
        return []
    x, y = inputs[0], results[0]
    match name:
        case "broadcast_in_dim":
            sources = params["broadcast_dimensions"]
            new = [[(y, axis)] for axis in range(_rank(y)) if axis not in sources]
            return new + [
                [(x, axis), (y, target)]
                for axis, target in enumerate(sources)
                if x.aval.shape[axis] == y.aval.shape[target]
            ]
        case "transpose":
            return [[(x, source), (y, axis)] for axis, source in enumerate(params["permutation"])]
        case "squeeze":
            return _reduced(x, y, params["dimensions"]) + [[(x, a)] for a in params["dimensions"]]
        case "dot_general":
            return _of_product(equation)
    if name in REDUCTIONS:
        alone = [] if name.startswith("arg") else [[(x, axis)] for axis in params["axes"]]
        return _reduced(x, y, params["axes"]) + alone
    if name in ELEMENTWISE:
        own: Collection[int] = ()
    elif name in ("concatenate", "sort"):
        own = (params["dimension"],)
    elif name in CUMULATIVE:
        own = (params["axis"],)
    else:
        return []
    atoms = [atom for atom in (*inputs, *results) if _rank(atom)]
    return [[(atom, axis) for atom in atoms] for axis in range(_rank(y)) if axis not in own]


def _reduced(x: Atom, y: Atom, axes: Sequence[int]) -> list[_Linked]:
    """Return the axes that an operand and the result of a reduction over other axes share."""
    rest = [axis for axis in range(_rank(x)) if axis not in axes]
    return [[(x, axis), (y, position)] for position, axis in enumerate(rest)]


def _of_product(equation: Equation) -> list[_Linked]:
    (x, y), (z,) = equation.invars, equation.outvars
    (contracted, other), (batch, other_batch) = equation.params["dimension_numbers"]
    groups: list[_Linked] = [[(x, a), (y, b)] for a, b in zip(contracted, other, strict=True)]
    pairs = zip(batch, other_batch, strict=True)
    groups += [[(x, a), (y, b), (z, axis)] for axis, (a, b) in enumerate(pairs)]
    free = [(x, axis) for axis in range(_rank(x)) if axis not in (*contracted, *batch)]
    free += [(y, axis) for axis in range(_rank(y)) if axis not in (*other, *other_batch)]
    return groups + [[each, (z, axis)] for axis, each in enumerate(free, len(batch))]


def _without(candidate: Shrunk, axes: Collection[_Axis]) -> Shrunk | None:
    """Return a candidate without some axes; None if it is not a program then."""
    if not axes:
        return None
    removed: dict[int, set[int]] = {}
    for key, axis in axes:
        removed.setdefault(key, set()).add(axis)

    def run(*arguments: jax.Array) -> list[jax.Array]:
        values = dict(zip(map(id, candidate.inputs), arguments, strict=True))
        equations = [e.replace(params=_params(e, removed)) for e in candidate.equations]
        for _ in EquationRun(is_split=False).steps(equations, values):
            pass
        return read(candidate.outputs, values)

    arguments: list[Value] = []
    types = []
    for var, value in zip(candidate.inputs, candidate.arguments, strict=True):
        gone = removed.get(id(var), set())
        shape = tuple(_rest(var.aval.shape, gone))
        types.append(retyped(var.aval, shape, var.aval.dtype) if gone else var.aval)
        index = tuple(0 if axis in gone else slice(None) for axis in range(_rank(var)))
        arguments.append(value if isinstance(value, Keys) else np.asarray(value[index]))
    try:
        return of_program(stage(run, types).program, arguments)
    except Exception:  # noqa: BLE001 - rules of abstract evaluation raise what they like
        return None


def _params(equation: Equation, removed: Mapping[int, set[int]]) -> Params:
    """Return the parameters of an equation without some axes of its operands and results."""
    params, name = equation.params, equation.primitive.name
    before, after = (
        [removed.get(id(atom), set()) for atom in atoms]
        for atoms in (equation.invars, equation.outvars)
    )
    if not any((*before, *after)):
        return params
    match name:
        case "iota":
            dimension = _moved([params["dimension"]], after[0])[0]
            new: Params = {"shape": _rest(params["shape"], after[0]), "dimension": dimension}
        case "broadcast_in_dim":
            targets = _moved(params["broadcast_dimensions"], after[0])
            new = {"shape": _rest(params["shape"], after[0]), "broadcast_dimensions": targets}
        case "transpose":
            new = {"permutation": _moved(params["permutation"], before[0])}
        case "squeeze":
            new = {"dimensions": _moved(params["dimensions"], before[0])}
        case "dot_general":
            pairs = params["dimension_numbers"]
            moved = [tuple(map(_moved, pair, before)) for pair in pairs]
            new = {"dimension_numbers": tuple(moved)}
        case "concatenate" | "sort":
            new = {"dimension": _moved([params["dimension"]], before[0])[0]}
        case _ if name in CUMULATIVE:
            new = {"axis": _moved([params["axis"]], before[0])[0]}
        case _ if name in REDUCTIONS:
            new = {"axes": _moved(params["axes"], before[0])}
        case _:
            new = {}
    return {**params, **new}


def _rest(entries: Sequence[Any], removed: Collection[int]) -> tuple[Any, ...]:
    return tuple(entry for axis, entry in enumerate(entries) if axis not in removed)


def _moved(axes: Sequence[int], removed: Collection[int]) -> tuple[int, ...]:
    """Return the new positions of those axes that are left."""
    left = (axis for axis in axes if axis not in removed)
    return tuple(axis - sum(gone < axis for gone in removed) for axis in left)
