"""The registries of rules: which rule writes an equation, by the name of its primitive.

A rule for a single equation yields candidate expressions (`LAX`, `PRETTY`), and one for several
consecutive equations does so in `IDIOMS`; each candidate is proved before it is used. A rule for an
equation with inner programs (`STRUCTURES`, `PRETTY_STRUCTURES`) writes functions for these and
returns the call; `ABSORBS` says which equations before such an equation are part of it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jaxsight_source.compat import avals, derivative_rules
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Literal, Params, Primitive
from jaxsight_source.compat.staging import is_literal, new_variable, opened
from jaxsight_source.equations.idioms import Idioms, hashable, number_of, program_key
from jaxsight_source.jaxprs.base import Rules
from jaxsight_source.jaxprs.same.values import value_token
from jaxsight_source.proof.prover import Claim, Proved
from jaxsight_source.text.exprs import SHORT, TRUE, Item, call, is_identifier, slot
from jaxsight_source.values import public_names, spelling


@dataclass(frozen=True, slots=True)
class EquationView:
    """An equation whose operands are slots, or literals in one of their spellings."""

    primitive: Primitive
    params: Params
    operands: tuple[ast.expr, ...]
    inputs: tuple[Aval, ...]
    """Abstract values of the operands."""
    outputs: tuple[Aval, ...]
    literals: tuple[object, ...]
    """For each operand, its value if it is a literal, else None."""

    @property
    def name(self) -> str:
        return str(self.primitive.name)


Spelling = Callable[[EquationView], Iterator[ast.expr]]
"""A rule for one equation: yields candidate expressions, the best one first.

Each is proved before it is used, so a rule may be speculative: candidates that are wrong, or do not
exist in this version of JAX, are skipped. It may raise `Unwritable`.
"""

LAX: Rules[Spelling] = Rules()
"""Explicit spellings, mostly through `jax.lax`."""

PRETTY: Rules[Spelling] = Rules()
"""Spellings as people write them; tried first in the pretty style."""

IDIOMS = Idioms()
"""Spellings of consecutive equations as one expression."""

Structure = Callable[[Any, Any], Proved | None]
"""A rule for an equation with inner programs, given the `writing.scope.Scope` that it is in.

The slots of the returned expression are filled; None leaves the equation to other rules.
"""

STRUCTURES: Rules[Structure] = Rules()

PRETTY_STRUCTURES: Rules[Structure] = Rules()
"""The same for the pretty style, tried first. The whole text is compared at the end."""

Absorb = Callable[[Sequence[Equation], int, Callable[[object], int]], int]
"""Returns how many equations from a position on belong together (1: only this one), given how often
each variable is used. The structure rule of the last equation receives all of them.
"""

ABSORBS: Rules[Absorb] = Rules()


VARIANTS = 3
"""The number of spellings of literals: Python numbers, numbers with a dtype, arrays."""


def claim_of(equation: Equation) -> tuple[Callable[[int], EquationView], Claim]:
    """Return views of an equation, for each spelling of its literals, and the claim to prove."""
    slots = map(slot, itertools.count())
    operands = [atom if is_literal(atom) else next(slots) for atom in equation.invars]

    def view_of(variant: int) -> EquationView:
        return EquationView(
            equation.primitive,
            equation.params,
            tuple(
                part if isinstance(part, ast.expr) else _literal(part, variant) for part in operands
            ),
            tuple(atom.aval for atom in equation.invars),
            tuple(var.aval for var in equation.outvars),
            tuple(atom.val if is_literal(atom) else None for atom in equation.invars),
        )

    # One for each operand: a variable that is used twice then has two.
    inputs = [new_variable(atom.aval) for atom in equation.invars if not is_literal(atom)]
    substitute = iter(inputs)
    stand_ins = [atom if is_literal(atom) else next(substitute) for atom in equation.invars]
    return view_of, Claim([equation.replace(invars=stand_ins)], inputs, equation.outvars)


def _literal(atom: Literal, variant: int) -> ast.expr:
    number = number_of(atom, plain=variant == 0 or (variant == 2 and avals.weak(atom.aval)))
    return call("jnp.asarray", number) if variant == 2 else number


def equation_key(equation: Equation) -> Hashable:
    """Return a key that is equal for equal equations, or unique if it cannot be hashed."""
    key = spelling_key(equation)
    return id(equation) if key is None else key


def spelling_key(equation: Equation) -> Hashable:
    """Return a key that determines how an equation is spelled, or None if it cannot be hashed."""
    primitive, params = equation.primitive, equation.params
    parameters: object = tuple(params.items())
    if primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        parameters = (program_key(opened(params["call_jaxpr"])), derivative_rules.rules_key(params))
        if parameters[0] is None:
            return None
        parameters = (*parameters, params["num_consts"], params["symbolic_zeros"])
    operands = tuple(map(_operand_key, equation.invars))
    return hashable((primitive, parameters, operands, equation.ctx))


def _operand_key(atom: Atom) -> object:
    if not is_literal(atom):
        return atom.aval
    value = atom.val
    if type(value) is float and value and not math.isnan(value):  # -0.0 is equal to 0.0
        return (value, float, atom.aval)
    return (value_token(value), atom.aval)


_HOMES = {"lax": "jax.lax", "lax.linalg": "jax.lax.linalg", "jax": "jax"} | {
    SHORT[module]: module for module in SHORT if ".pallas" in module
}
"""The modules with functions named like primitives, those of Pallas if they are imported."""


def passed(params: Params, *names: str) -> dict[str, ast.expr]:
    """Return those of the named parameters that are not None, as keyword arguments."""
    return {name: spelling.value(params[name]) for name in names if params.get(name) is not None}


def flags(params: Params, *names: str) -> dict[str, ast.expr]:
    """Return `name=True` for those of the named parameters that are true."""
    return {name: TRUE for name in names if params.get(name)}


def signatures(
    name: str, homes: Mapping[str, ModuleType | None]
) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the paths and signatures of functions of that name in modules, by their paths."""
    for path, module in homes.items():
        function = getattr(module, name, None)
        if callable(function) and not isinstance(function, type):
            with contextlib.suppress(TypeError, ValueError):
                yield f"{path}.{name}", inspect.signature(function)


@functools.cache
def public_function(name: str) -> tuple[str, inspect.Signature] | None:
    """Return the path and signature of the public function with a primitive's name."""
    homes = {path: sys.modules.get(module) for path, module in _HOMES.items()}
    return next(signatures(name.replace("-", "_"), homes), None)


def by_name(view: EquationView) -> Iterator[ast.expr]:
    """Yield a call such as `lax.cumsum(x, axis=0)`.

    Operands are passed for the parameters for which the equation has no value.
    """
    public = public_function(view.name)
    if public is None:
        return
    path, signature = public
    for explicit in (False, True):
        candidate = _called(path, signature, view, explicit)
        if candidate is not None:
            yield candidate


def _called(
    path: str, signature: inspect.Signature, view: EquationView, explicit: bool
) -> ast.expr | None:
    waiting = list(view.operands)
    positional: list[Item] = []
    named: list[Item] = []
    for parameter in signature.parameters.values():
        if parameter.name in view.params:
            argument = view.params[parameter.name]
            if explicit or not is_default(argument, parameter.default):
                named.append(ast.keyword(parameter.name, spelling.value(argument)))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(waiting)
            waiting = []
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        elif waiting and not named:
            positional.append(waiting.pop(0))
        elif waiting and parameter.default is inspect.Parameter.empty:
            named.append(ast.keyword(parameter.name, waiting.pop(0)))
        elif parameter.default is inspect.Parameter.empty:
            return None
    return None if waiting else call(path, *positional, *named)


def is_default(argument: object, default: object) -> bool:
    """Return whether an argument is the parameter's default, or equal to it and of its type."""
    if argument is default:
        return True
    try:
        return type(argument) is type(default) and bool(argument == default)
    except (TypeError, ValueError):
        return False


def by_package(view: EquationView) -> Iterator[ast.expr]:
    """Yield the same for another package's primitive, as `equinox.internal.unvmap_any(x)`."""
    package = public_names.package_of(view.primitive)
    if package is None or not is_identifier(view.name):
        return
    for path in public_names.functions_called(view.name, package):
        named = {name: spelling.value(value) for name, value in view.params.items()}
        yield call(path, *view.operands)
        if named and all(map(is_identifier, named)):
            yield call(path, *view.operands, **named)


def by_primitive(view: EquationView) -> Iterator[ast.expr]:
    """Yield a call such as `primitives.add_jaxvals_p.bind(x, y)`."""
    path = public_names.primitive(view.primitive)
    named = {name: spelling.value(value) for name, value in view.params.items()}
    if all(is_identifier(name) for name in named):
        yield call(ast.Attribute(path, "bind"), *view.operands, **named)


def stepping(params: Params, *names: str) -> dict[str, ast.expr]:
    """Return the strides and dilations among parameters that are not all 1."""
    chosen = [name for name in names if any(step != 1 for step in params.get(name) or ())]
    return passed(params, *chosen)
