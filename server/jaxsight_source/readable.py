"""Programs whose derivatives pass on only what is read, for the readable style.

Differentiation makes two calls of each jitted function, and two choices of each choice, a forward
and a backward one. The first returns, and the second takes, values that nobody reads: zeros in
place of absent cotangents, and all that inner calls return. JAX removes them when it compiles
(`dce_jaxpr_pjit_rule` in pjit.py, `_cond_dce_rule` in lax/control_flow/conditionals.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from jaxsight_source.choices import ENTERED, is_plain_choice, with_choices
from jaxsight_source.compat.inner import inner_jaxprs, replaced
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters.sources import is_derivative
from jaxsight_source.compat.staging import open_jaxpr, rebuilt, with_inner

_PER_INPUT = ("in_shardings", "in_layouts", "donated_invars")
_PER_OUTPUT = ("out_shardings", "out_layouts")


def readable(jaxpr: object) -> object:
    """Return a jaxpr in which calls and choices of derivatives pass on only what is read.

    Calls of one function still call one function: it returns what any of them reads. Calls that
    have effects, ask to keep what they do not use, or are not derivatives, are as before; choices
    are those of `with_choices`. It computes the same values, with the same derivatives.
    """
    jaxpr = with_choices(jaxpr)
    pruning = _Pruning(jaxpr)
    return pruning.program(jaxpr) if pruning.found else jaxpr


class _Pruning:
    """Which inputs and outputs of called programs are read, by the ids of their jaxprs.

    The branches of a choice share both.
    """

    def __init__(self, jaxpr: object) -> None:
        self._inputs: dict[int, set[int]] = {}
        self._outputs: dict[int, set[int]] = {}
        self._programs: dict[int, tuple[object, object]] = {}
        changing: dict[int, list[object]] = {}
        kept = set[int]()
        entered = list(_entered(jaxpr))
        for value, derived in entered:
            for equation in open_jaxpr(value).eqns:
                if called := _called(equation):
                    changing[id(called[0])] = called
                    if not (derived or is_derivative(equation)) or _is_kept(equation):
                        kept.add(id(called[0]))
        for first in changing.keys() - kept:
            inputs, outputs = set[int](), set[int]()
            self._inputs |= {id(value): inputs for value in changing[first]}
            self._outputs |= {id(value): outputs for value in changing[first]}
        self.found = bool(self._inputs)
        count = -1
        while count != (count := self._count()):  # until the calls read nothing further
            for value, _ in entered:
                self._read(value)

    def _count(self) -> int:
        return sum(map(len, (*self._inputs.values(), *self._outputs.values())))

    def _changing(self, equation: Equation) -> int | None:
        """Return the id of the program of a call that is pruned, or None."""
        called = _called(equation)
        return id(called[0]) if called and id(called[0]) in self._inputs else None

    def _operands(self, equation: Equation, inner: int) -> set[int]:
        """Return the positions of the operands of a call that are read."""
        first = len(equation.invars) - len(open_jaxpr(_called(equation)[0]).invars)
        return {*range(first), *(first + position for position in self._inputs[inner])}

    def _read(self, value: object) -> None:
        """Note what a jaxpr reads, given which of its results are."""
        jaxpr = open_jaxpr(value)
        outputs = self._outputs.get(id(value))
        needed = {id(v) for i, v in enumerate(jaxpr.outvars) if outputs is None or i in outputs}
        for equation in reversed(jaxpr.eqns):
            read = {i for i, var in enumerate(equation.outvars) if id(var) in needed}
            if not equation.effects and not read:
                continue
            inner = self._changing(equation)
            if inner is None:
                needed.update(map(id, equation.invars))
            else:
                self._outputs[inner].update(read)
                needed.update(map(id, _at(equation.invars, self._operands(equation, inner))))
        if id(value) in self._inputs:
            read = {i for i, var in enumerate(jaxpr.invars) if id(var) in needed}
            self._inputs[id(value)].update(read)

    def program(self, value: object) -> object:
        """Return a jaxpr without what is not read."""
        if id(value) not in self._programs:
            jaxpr = open_jaxpr(value)
            equations = [self._equation(equation) for equation in jaxpr.eqns]
            if id(value) not in self._inputs:
                changed = jaxpr.replace(eqns=equations)
            else:
                inputs = _at(jaxpr.invars, self._inputs[id(value)])
                outputs = _at(jaxpr.outvars, self._outputs[id(value)])
                changed = rebuilt(jaxpr, equations, inputs, outputs)
            self._programs[id(value)] = value, with_inner(value, changed)
        return self._programs[id(value)][1]

    def _equation(self, equation: Equation) -> Equation:
        if equation.primitive.name not in ENTERED:
            return equation
        params = replaced(equation.params, lambda part: self.program(part.value))
        inner = self._changing(equation)
        if inner is None:
            return equation.replace(params=params)
        operands, outputs = self._operands(equation, inner), self._outputs[inner]
        for names, read in ((_PER_INPUT, operands), (_PER_OUTPUT, outputs)):
            params |= {name: _at(params[name], read) for name in names if name in params}
        invars, outvars = _at(equation.invars, operands), _at(equation.outvars, outputs)
        return equation.replace(invars=list(invars), outvars=list(outvars), params=params)


def _entered(jaxpr: object) -> Iterator[tuple[object, bool]]:
    """Yield a jaxpr and those inside that are pruned too, each before those inside it.

    With each is whether it is inside of a derivative: only the outermost calls are marked as such.
    """
    waiting, visited = [(jaxpr, False)], set[tuple[int, bool]]()
    while waiting:
        value, derived = waiting.pop()
        if (id(value), derived) in visited:
            continue
        visited.add((id(value), derived))
        yield value, derived
        for equation in open_jaxpr(value).eqns:
            if equation.primitive.name in ENTERED:
                inside = derived or is_derivative(equation)
                waiting += [(part.value, inside) for part in inner_jaxprs(equation)]


def _called(equation: Equation) -> list[object]:
    """Return the programs that a call of a jitted function, or a choice, may run."""
    if equation.primitive.name in ("jit", "pjit") or is_plain_choice(equation):
        return [part.value for part in inner_jaxprs(equation)]
    return []


def _is_kept(equation: Equation) -> bool:
    return bool(equation.effects) or equation.params.get("keep_unused", False)


Entry = TypeVar("Entry")


def _at(entries: Sequence[Entry], positions: set[int]) -> tuple[Entry, ...]:
    return tuple(entry for index, entry in enumerate(entries) if index in positions)
