"""Programs whose choices are calls of `lax.cond` and `lax.switch`, for the readable style.

These functions convert or clamp their index just before they choose. Differentiation makes two
choices of each, by one index: the second has no conversion of its own, and inside of another choice
its index is a result of that one. Here each choice has a conversion of its own, and the truth value
is passed on instead of the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from jaxsight_source.compat.inner import Inner, replaced
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Jaxpr
from jaxsight_source.compat.parameters.sources import is_derivative
from jaxsight_source.compat.staging import (
    is_literal,
    new_literal,
    new_variable,
    open_jaxpr,
    rebuilt,
    substituted,
    with_inner,
)

ENTERED = frozenset({"checkpoint", "closed_call", "cond", "jit", "pjit", "remat2", "scan", "while"})
"""Primitives whose inner programs are changed, too."""


def with_choices(jaxpr: object) -> object:
    """Return a jaxpr in which each choice of a derivative converts its own index.

    A result that all branches pass through becomes the operand itself, and an uninitialized number
    (`empty2`), which a branch returns in place of what others compute, becomes the zero that JAX
    lowers it to (`_empty2_lower`, lax.py). It computes the same values, with the same derivatives:
    indices have none.
    """
    return _Choices().program(jaxpr, derived=False)


class _Choices:
    """The jaxprs with such choices, by the ids of the originals and whether these are derived."""

    def __init__(self) -> None:
        self._programs: dict[tuple[int, bool], tuple[object, object]] = {}
        self.conversion: Equation | None = None
        """Some equation that converts a truth value to an index."""

    def program(self, value: object, *, derived: bool) -> object:
        key = (id(value), derived)
        if key not in self._programs:
            jaxpr = open_jaxpr(value)
            block = _Block(self, jaxpr, derived)
            changed = jaxpr.replace(eqns=block.equations, outvars=block.results)
            self._programs[key] = value, with_inner(value, changed)
        return self._programs[key][1]


class _Block:
    """The equations of a jaxpr, rewritten.

    Args:
        truths: the truth values of those of its inputs that are indices, by the inputs' ids.
    """

    def __init__(
        self,
        choices: _Choices,
        jaxpr: Jaxpr,
        derived: bool,
        truths: dict[int, Atom] | None = None,
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
                return self._choices.program(part.value, derived=derived)

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
                _position(block.results[position], jaxpr)
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


def _position(atom: Atom, jaxpr: Jaxpr) -> int | None:
    """Return which input of a jaxpr a result is, or None."""
    return next((index for index, var in enumerate(jaxpr.invars) if var is atom), None)
