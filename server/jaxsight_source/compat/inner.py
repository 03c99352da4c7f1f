"""The jaxprs inside equations, and walks over all equations of a program.

Applies to JAX 0.8 to 0.12. `jax._src.core.jaxprs_in_params` yields the same jaxprs without
the parameters that hold them, which paths are made of, and without their constants.

An equation's path is its index among its jaxpr's equations, from 0, below the path of the equation
around it and the name of the inner jaxpr: `3`, `3/body/1`, `4/branches1/0`.
`body` is the name for the parameters `jaxpr`, `body_jaxpr` and `call_jaxpr` of loops and calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from jax._src.state import discharge
from jax._src.state.types import AbstractRef

from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr, Params
from jaxsight_source.compat.staging import Program, is_jaxpr, open_jaxpr, opened

_BODY = frozenset({"jaxpr", "body_jaxpr", "call_jaxpr"})


def part_name(parameter: str) -> str:
    """Return the name of a parameter's jaxpr in paths: `body`, `cond`, `branches`."""
    return "body" if parameter in _BODY else parameter.removesuffix("_jaxpr")


@dataclass(frozen=True, slots=True)
class Inner:
    """A jaxpr in an equation's parameters: the parameter, or the entry `index` of its sequence."""

    parameter: str
    index: int | None
    value: object
    """The jaxpr as JAX holds it, closed or open."""

    @property
    def name(self) -> str:
        """The part of a path: `body`, `cond`, `branches1`."""
        name = part_name(self.parameter)
        return name if self.index is None else f"{name}{self.index}"

    @property
    def jaxpr(self) -> Jaxpr:
        return open_jaxpr(self.value)

    @property
    def program(self) -> Program:
        return opened(self.value)

    def exchanged(self, params: Params, jaxpr: object) -> Params:
        """Return an equation's parameters with another jaxpr in this place."""
        if self.index is None:
            return {**params, self.parameter: jaxpr}
        entries = params[self.parameter]
        kind = type(entries)
        listed = (*entries[: self.index], jaxpr, *entries[self.index + 1 :])
        return {
            **params, self.parameter: kind(*listed) if hasattr(kind, "_fields") else kind(listed)
        }  # fmt: skip


def inner_jaxprs(equation: Equation) -> Iterator[Inner]:
    """Yield the jaxprs in an equation's parameters, in order."""
    return in_parameters(equation.params)


def in_parameters(params: Params) -> Iterator[Inner]:
    for parameter, value in params.items():
        if is_jaxpr(value):
            yield Inner(parameter, None, value)
        elif isinstance(value, tuple | list):
            for index, part in enumerate(value):
                if is_jaxpr(part):
                    yield Inner(parameter, index, part)


def replaced(params: Params, change: Callable[[Inner], object]) -> Params:
    """Return an equation's parameters with another jaxpr for each one."""
    for part in in_parameters(params):
        changed = change(part)
        if changed is not part.value:
            params = part.exchanged(params, changed)
    return params


def walk(jaxpr: object, prefix: str = "") -> Iterator[tuple[str, Equation]]:
    """Yield all equations with their paths, each before those of its inner jaxprs."""
    for index, equation in enumerate(open_jaxpr(jaxpr).eqns):
        path = f"{prefix}{index}"
        yield path, equation
        for part in inner_jaxprs(equation):
            yield from walk(part.value, f"{path}/{part.name}/")


def all_jaxprs(jaxpr: object) -> Iterator[object]:
    """Yield a jaxpr and those inside, as JAX holds them; those that equations share, once."""
    waiting, visited = [jaxpr], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) not in visited:
            visited.add(id(current))
            yield current
            parts = [
                part for equation in open_jaxpr(current).eqns for part in inner_jaxprs(equation)
            ]
            waiting += [part.value for part in reversed(parts)]


def equation_count(jaxpr: object) -> int:
    """Return the number of equations, including those of inner jaxprs.

    A jaxpr that several equations share counts for each of them.
    """
    totals: dict[int, int] = {}

    def counted(opened: Jaxpr) -> int:
        total = totals.get(id(opened))
        if total is None:
            inside = (part.jaxpr for equation in opened.eqns for part in inner_jaxprs(equation))
            total = totals[id(opened)] = len(opened.eqns) + sum(map(counted, inside))
        return total

    return counted(open_jaxpr(jaxpr))


def without_refs(closed: object) -> Program:
    """Return the program of a result of `jax.make_jaxpr`, with arrays in place of `Ref`s.

    Reading and writing become operations on arrays. Other programs stay as they are.
    """
    equations = (equation for _, equation in walk(closed))
    made = (var.aval for equation in equations for var in equation.outvars)
    if not any(isinstance(aval, AbstractRef) for aval in made):
        return opened(closed)
    discharge_state = cast(Any, discharge.discharge_state)
    if hasattr(discharge, "discharge_state2"):
        discharge_state = getattr(discharge, "discharge_state2")  # noqa: B009
    return opened(discharge_state(closed))
