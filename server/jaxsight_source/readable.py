"""Programs whose derivatives pass on only what is read, for the readable style.

Differentiation makes two calls of each jitted function, and two choices of each choice, a forward
and a backward one. The first returns, and the second takes, values that nobody reads: zeros in
place of absent cotangents, and all that inner calls return. JAX removes them when it compiles
(`dce_jaxpr_pjit_rule` in pjit.py, `_cond_dce_rule` in lax/control_flow/conditionals.py).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from jaxsight_source.compat.inner import Inner, inner_jaxprs, replaced
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Jaxpr
from jaxsight_source.compat.locations import is_derivative
from jaxsight_source.compat.staging import (
    Program,
    is_dropped,
    is_literal,
    new_literal,
    new_variable,
    open_jaxpr,
    opened,
    rebuilt,
    substituted,
    with_inner,
)

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
        self.program = functools.cache(self._changed)
        """Returns a jaxpr without what is not read."""
        changing: dict[int, list[object]] = {}
        kept = set[int]()
        entered = list(_entered(jaxpr))
        for value, derived in entered:
            for equation in open_jaxpr(value).eqns:
                if called := _called(equation):
                    changing[id(called[0])] = called
                    keeps = equation.effects or equation.params.get("keep_unused")
                    if keeps or not (derived or is_derivative(equation)):
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

    def _changed(self, value: object) -> object:
        jaxpr = open_jaxpr(value)
        equations = [self._equation(equation) for equation in jaxpr.eqns]
        if id(value) not in self._inputs:
            return with_inner(value, jaxpr.replace(eqns=equations))
        inputs = _at(jaxpr.invars, self._inputs[id(value)])
        outputs = _at(jaxpr.outvars, self._outputs[id(value)])
        return with_inner(value, rebuilt(jaxpr, equations, inputs, outputs))

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


Entry = TypeVar("Entry")


def _at(entries: Sequence[Entry], positions: set[int]) -> tuple[Entry, ...]:
    return tuple(entry for index, entry in enumerate(entries) if index in positions)


ENTERED = frozenset({"checkpoint", "closed_call", "cond", "jit", "pjit", "remat2", "scan", "while"})
"""Primitives whose inner programs are changed, too."""


def with_choices(jaxpr: object) -> object:
    """Return a jaxpr in which each choice of a derivative converts its own index.

    A result that all branches pass through becomes the operand itself, and an uninitialized number
    (`empty2`), which a branch returns in place of what others compute, becomes the zero that JAX
    lowers it to (`_empty2_lower`, lax.py). It computes the same values, with the same derivatives:
    indices have none.
    """
    return _Choices().program(jaxpr, False)


class _Choices:
    """The jaxprs with such choices, each once as a derivative, and once as none."""

    def __init__(self) -> None:
        self.program = functools.cache(self._changed)
        self.conversion: Equation | None = None
        """Some equation that converts a truth value to an index."""

    def _changed(self, value: object, derived: bool) -> object:
        jaxpr = open_jaxpr(value)
        block = _Block(self, jaxpr, derived)
        return with_inner(value, jaxpr.replace(eqns=block.equations, outvars=block.results))


class _Block:
    """The equations of a jaxpr, rewritten.

    Args:
        truths: the truth values of those of its inputs that are indices, by the inputs' ids.
    """

    def __init__(
        self, choices: _Choices, jaxpr: Jaxpr, derived: bool, truths: dict[int, Atom] | None = None
    ) -> None:
        self._choices = choices
        self._derived = derived
        self._values: dict[int, Atom] = {}
        """What takes the place of variables, by their ids."""
        self._truths = truths or {}
        self._clamps: dict[int, Equation] = {}
        """The equations that clamped indices, by the ids of the indices."""
        self._unset: set[int] = set()
        """The ids of uninitialized numbers."""
        self._uses = Counter(id(v) for e in jaxpr.eqns for v in e.invars)
        self._uses.update(map(id, jaxpr.outvars))
        self.equations: list[Equation] = []
        for equation in jaxpr.eqns:
            self._write(equation.replace(invars=self._now(equation.invars)))
        self.results = self._now(jaxpr.outvars)

    def _now(self, atoms: Sequence[Atom]) -> list[Atom]:
        return substituted(atoms, self._values)

    def _write(self, equation: Equation) -> None:
        derived = self._derived or is_derivative(equation)
        name = equation.primitive.name
        if name == "empty2" and derived and _is(equation.outvars[0].aval):
            (number,) = equation.outvars
            self._unset.add(id(number))
            zero = np.zeros((), number.aval.dtype)
            self._values[id(number)] = new_literal(zero, number.aval)
            return
        if name == "convert_element_type" and _is_choice(equation):
            self._choices.conversion = equation
            self._truths[id(equation.outvars[0])] = equation.invars[0]
        elif name == "clamp":
            self._clamps[id(equation.outvars[0])] = equation
        elif derived and is_plain_choice(equation) and not equation.effects:
            self._choose(equation)
            return
        elif name in ENTERED:

            def changed(part: Inner) -> object:
                return self._choices.program(part.value, derived)

            equation = equation.replace(params=replaced(equation.params, changed))
        self.equations.append(equation)

    def _choose(self, equation: Equation) -> None:
        """Write a choice that takes and returns the truth values of indices, too."""
        operands = equation.invars[1:]
        indices = [i for i, atom in enumerate(operands) if id(atom) in self._truths]
        passed = [self._truths[id(operands[i])] for i in indices]
        jaxprs = [open_jaxpr(branch) for branch in equation.params["branches"]]
        taken = [[new_variable(atom.aval) for atom in passed] for _ in jaxprs]
        blocks = [
            _Block(
                self._choices,
                jaxpr,
                True,
                {id(jaxpr.invars[i]): var for i, var in zip(indices, own, strict=True)},
            )
            for jaxpr, own in zip(jaxprs, taken, strict=True)
        ]
        outvars = list(equation.outvars)
        for position, var in enumerate(equation.outvars):
            known = (
                block.truth(jaxpr.outvars[position])
                for jaxpr, block in zip(jaxprs, blocks, strict=True)
            )
            returned = [atom for atom in known if atom is not None]
            if len(returned) < len(jaxprs) or all(map(is_literal, returned)):
                continue
            truth = new_variable(next(atom.aval for atom in returned if not is_literal(atom)))
            self._truths[id(var)] = truth
            outvars.append(truth)
            for block, atom in zip(blocks, returned, strict=True):
                block.results.append(atom)
        for position, var in enumerate(equation.outvars):
            sources = {
                next(
                    (i for i, var in enumerate(jaxpr.invars) if var is block.results[position]),
                    None,
                )
                for jaxpr, block in zip(jaxprs, blocks, strict=True)
            }
            if len(sources) == 1 and (source := sources.pop()) is not None:
                self._values[id(var)] = operands[source]
                outvars[position] = new_variable(var.aval)  # nothing reads it
        branches = tuple(
            with_inner(
                branch, rebuilt(jaxpr, block.equations, [*jaxpr.invars, *own], block.results)
            )
            for branch, jaxpr, block, own in zip(
                equation.params["branches"], jaxprs, blocks, taken, strict=True
            )
        )
        self.equations.append(
            equation.replace(
                invars=[self._index(equation), *operands, *passed],
                outvars=outvars,
                params=equation.params | {"branches": branches},
            )
        )

    def truth(self, atom: Atom) -> Atom | None:
        """Return the truth value of an index that a jaxpr returns; None if it is unknown.

        That of an uninitialized number is any: nobody reads it.
        """
        conversion = self._choices.conversion
        if conversion is not None and _is(atom.aval, np.int32):
            number = 0 if id(atom) in self._unset else atom.val if is_literal(atom) else None
            if number in (0, 1):  # up to JAX 0.8, zero stands for what a branch does not compute
                return new_literal(np.bool_(number), conversion.invars[0].aval)
        return self._truths.get(id(atom))

    def _index(self, equation: Equation) -> Atom:
        """Return the index of a choice, from a conversion of its own."""
        index = equation.invars[0]
        before = self.equations[-1].outvars if self.equations else ()
        if self._uses[id(index)] == 1 and any(var is index for var in before):
            return index
        truth, maker = self._truths.get(id(index)), self._clamps.get(id(index))
        if truth is not None and self._choices.conversion is not None:
            maker = self._choices.conversion.replace(invars=[truth])
        if maker is None:
            return index
        own = new_variable(index.aval)
        self.equations.append(
            maker.replace(outvars=[own], source_info=equation.source_info, ctx=equation.ctx)
        )
        return own


def _is(aval: Aval, dtype: type[np.generic] | None = None) -> bool:
    """Return whether a type is that of scalars, of a dtype if one is given."""
    return getattr(aval, "shape", None) == () and (dtype is None or aval.dtype == dtype)


def _is_choice(equation: Equation) -> bool:
    """Return whether an equation converts a truth value to an index, as `lax.cond` does."""
    (truth,), (index,) = equation.invars, equation.outvars
    return (
        _is(truth.aval, np.bool_)
        and _is(index.aval, np.int32)
        and not is_literal(truth)
        and not equation.params["weak_type"]
    )


def is_plain_choice(equation: Equation) -> bool:
    """Return whether an equation is a choice without options, such as of platforms."""
    options = {key for key, value in equation.params.items() if value is not None}
    return equation.primitive.name == "cond" and options == {"branches"}


Inlined = Callable[[Equation], Program | None]
"""Returns the program that takes the place of an equation; None if none does."""


def primal(jaxpr: object) -> object:
    """Return a jaxpr with `custom_jvp` and `custom_vjp` calls inlined, at every level.

    It computes the same values; its derivatives are those of the equations. Calls of programs with
    constants of their own are kept.
    """
    custom = ("custom_jvp_call", "custom_vjp_call")
    return inlined(
        jaxpr, lambda e: opened(e.params["call_jaxpr"]) if e.primitive.name in custom else None
    )


def inlined(jaxpr: object, program_of: Inlined) -> object:
    """Return a jaxpr with the programs of equations in place of these, at every level.

    A program with constants of its own takes no place.
    """
    return _Inlining(program_of).jaxpr(jaxpr)


class _Inlining:
    """Inlines programs; what two jaxprs share is one object again."""

    def __init__(self, program_of: Inlined) -> None:
        self._program_of = program_of
        self.jaxpr = functools.cache(self._changed)

    def _changed(self, jaxpr: object) -> object:
        inside = open_jaxpr(jaxpr)
        equations: list[Equation] = []
        values: dict[int, Atom] = {}
        self._append(inside.eqns, equations, values, renamed=False)
        outputs = substituted(inside.outvars, values)
        left = {effect for equation in equations for effect in equation.effects}
        gone = {effect for equation in inside.eqns for effect in equation.effects} - left
        effects = frozenset(inside.effects) - gone
        return with_inner(jaxpr, inside.replace(eqns=equations, outvars=outputs, effects=effects))

    def _append(
        self,
        originals: Sequence[Equation],
        equations: list[Equation],
        values: dict[int, Atom],
        *,
        renamed: bool,
    ) -> None:
        """Append equations to others; `values` maps replaced variables to their atoms.

        Args:
            renamed: give results new variables, since the equations may be appended several times.
        """
        for equation in originals:
            operands = substituted(equation.invars, values)
            program = self._program_of(equation)
            if program is not None and not program.jaxpr.constvars:
                own = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
                self._append(program.jaxpr.eqns, equations, own, renamed=True)
                outputs = substituted(program.jaxpr.outvars, own)
                values.update(zip(map(id, equation.outvars), outputs, strict=True))
                continue
            results = list(equation.outvars)
            if renamed:
                results = [var if is_dropped(var) else new_variable(var.aval) for var in results]
                values.update(zip(map(id, equation.outvars), results, strict=True))
            params = replaced(equation.params, lambda part: self.jaxpr(part.value))
            equations.append(equation.replace(invars=operands, outvars=results, params=params))
