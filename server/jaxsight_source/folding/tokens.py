"""Numbers that are equal for equal equations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxsight_source.compat import rule_identity
from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.compat.staging import is_dropped, is_jaxpr, is_literal, opened
from jaxsight_source.folding.steps import FoldedStep, Operand
from jaxsight_source.jaxprs.same.tokens import value_token


class EquationNumbers:
    """The numbers of equations, which are equal for equal ones; they grow as equations are met.

    Objects that many equations share, such as types and the programs of jitted functions, are
    examined once.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._exact: dict[int, int] = {}
        """The numbers of equations with their literals, by the equation's id."""
        self._loose: dict[int, int] = {}
        """The same without the values of literals."""
        self._parts: dict[Hashable, int] = {}
        """The numbers of parts of equations, by their contents."""
        self._part_of: dict[int, int] = {}
        """The same by the part's id."""
        self._kept: list[object] = []
        """The objects whose ids are keys, kept alive so that no other object has their ids."""

    def of(self, equation: Any, *, exact: bool = True) -> int:
        """Return a number that is equal for equations that differ only in their operands.

        Literals must be equal too, if `exact`.
        """
        if isinstance(equation, FoldedStep):
            return self._number(("step", equation.kind, id(equation.family)))
        known = self._exact if exact else self._loose
        number = known.get(id(equation))
        if number is None:
            self._kept.append(equation)
            if exact or any(map(is_literal, equation.invars)):
                number = self._number(self._look(equation, exact))
            else:
                number = self.of(equation)
            known[id(equation)] = number
        return number

    def _number(self, look: Hashable) -> int:
        return self._numbers.setdefault(look, len(self._numbers))

    def _look(self, equation: Equation, exact: bool) -> Hashable:
        try:
            return (
                equation.primitive,
                self._parameters(equation.primitive.name, equation.params),
                tuple([self._operand(atom, exact) for atom in equation.invars]),
                tuple([(self._part(var.aval), is_dropped(var)) for var in equation.outvars]),
                self._part(equation.ctx),
            )
        except _Unhashable:
            return ("alone", id(equation))

    def _operand(self, atom: Operand, exact: bool) -> Hashable:
        if not is_literal(atom):
            return self._part(atom.aval)
        return ("literal", value_token(atom.val) if exact else None, self._part(atom.aval))

    def _parameters(self, name: str, params: Params) -> Hashable:
        if name in ("custom_jvp_call", "custom_vjp_call"):
            key = rule_identity.rules_key(params)
            called = self._frozen(params["call_jaxpr"])
            return self._interned((called, key, params["num_consts"], params["symbolic_zeros"]))
        return tuple([(parameter, self._frozen(value)) for parameter, value in params.items()])

    def _part(self, value: object) -> int:
        """Return the number of a type or a context."""
        part = self._part_of.get(id(value))
        return self._kept_part(value, value) if part is None else part

    def _frozen(self, value: object) -> int:
        """Return a number that differs for different parameters; it may differ for equal ones."""
        part = self._part_of.get(id(value))
        return self._kept_part(value, self._contents(value)) if part is None else part

    def _kept_part(self, value: object, key: object) -> int:
        part = self._part_of[id(value)] = self._interned(key)
        self._kept.append(value)
        return part

    def _interned(self, key: object) -> int:
        try:
            return self._parts.setdefault(key, len(self._parts))
        except TypeError:
            raise _Unhashable from None

    def _contents(self, value: object) -> Hashable:
        if is_jaxpr(value):
            return self._program(value)
        if isinstance(value, (tuple, list)):
            return (type(value), *map(self._frozen, value))
        if isinstance(value, dict):
            items = [(name, self._frozen(part)) for name, part in value.items()]
            return (dict, *items)
        if isinstance(value, (bool, int, float, complex)):
            return (type(value), repr(value))
        try:
            hash(value)
        except TypeError:
            return ("id", id(value))
        return value

    def _program(self, value: object) -> Hashable:
        program = opened(value)
        jaxpr = program.jaxpr
        if program.consts or jaxpr.constvars:
            return ("id", id(value))
        number = {id(var): index for index, var in enumerate(jaxpr.invars)}
        body: list[Hashable] = []
        for equation in jaxpr.eqns:
            operands = [None if is_literal(a) else number.get(id(a)) for a in equation.invars]
            body.append((self._look(equation, True), *operands))
            for var in equation.outvars:
                number[id(var)] = len(number)
        results = [
            self._operand(a, True) if is_literal(a) else number.get(id(a)) for a in jaxpr.outvars
        ]
        return (tuple([self._part(var.aval) for var in jaxpr.invars]), *body, *results)


class _Unhashable(Exception):
    """A part of an equation cannot be hashed, so no other equation is known to be equal."""


def atom_key(atom: Operand) -> Hashable:
    if is_literal(atom):
        return ("literal", value_token(atom.val), atom.aval)
    return id(atom)
