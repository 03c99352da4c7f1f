"""Numbers that are equal for equal equations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxsight.interpreters.compat import rule_identity
from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.interpreters.compat.staging import (
    is_dropped,
    is_jaxpr,
    is_literal,
    opened,
)
from jaxsight.interpreters.same.tokens import value_token
from jaxsight.sourcerizer.folding.steps import Operand, Step


def token_of(equation: Any, cache: dict[object, int], *, exact: bool = True) -> int:
    """Return a number that is equal for equations that differ only in their operands.

    Literals must be equal too, if `exact`.
    """
    if isinstance(equation, Step):
        return cache.setdefault(("step", equation.kind, id(equation.family)), len(cache))
    key = ("at", id(equation), exact)
    number = cache.get(key)
    if number is None:
        look = _look(equation, exact)
        number = cache[key] = cache.setdefault(look, len(cache))
        cache["kept", id(equation)] = equation  # kept alive, so that its id is not reused
    return number


def _look(equation: Equation, exact: bool) -> Hashable:
    operands = tuple(
        (atom_key(atom) if exact else ("literal", atom.aval)) if is_literal(atom) else atom.aval
        for atom in equation.invars
    )
    params = equation.params
    if equation.primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        parameters: Hashable = (
            _frozen(params["call_jaxpr"]),
            rule_identity.rules_key(params),
            params["num_consts"],
            params["symbolic_zeros"],
        )
    else:
        parameters = tuple((name, _frozen(value)) for name, value in params.items())
    results = tuple((var.aval, is_dropped(var)) for var in equation.outvars)
    look = (equation.primitive, parameters, operands, results, equation.ctx)
    try:
        hash(look)
    except TypeError:
        return ("alone", id(equation))
    return look


def _frozen(value: object) -> Hashable:
    """Return a key that differs for different parameters; it may also differ for equal ones."""
    if is_jaxpr(value):
        return _program(value)
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    if isinstance(value, (bool, int, float, complex)):
        return (type(value), repr(value))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _program(value: object) -> Hashable:
    program = opened(value)
    jaxpr = program.jaxpr
    if program.consts or jaxpr.constvars:
        return id(value)
    number = {id(var): index for index, var in enumerate(jaxpr.invars)}
    body: list[Hashable] = []
    for equation in jaxpr.eqns:
        operands = tuple(None if is_literal(a) else number.get(id(a)) for a in equation.invars)
        body.append((_look(equation, True), operands))
        for var in equation.outvars:
            number[id(var)] = len(number)
    results = tuple(atom_key(a) if is_literal(a) else number.get(id(a)) for a in jaxpr.outvars)
    return (tuple(var.aval for var in jaxpr.invars), tuple(body), results)


def atom_key(atom: Operand) -> Hashable:
    if is_literal(atom):
        return ("literal", value_token(atom.val), atom.aval)
    return id(atom)
