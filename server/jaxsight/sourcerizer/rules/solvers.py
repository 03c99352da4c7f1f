"""Linear solves of lineax, whose primitive keeps operator and solver as objects: by the call that
made them. lineax jits its function, so that the call is one equation, which is proved like others.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxsight.interpreters.compat.staging import is_literal, opened
from jaxsight.sourcerizer import spelling
from jaxsight.sourcerizer.exprs import Atom, Attribute, Expr, Item, Keyword, Slot, call, tuple_
from jaxsight.sourcerizer.prover import Claim
from jaxsight.sourcerizer.spelling import value
from jaxsight.sourcerizer.writer import ABSORBS, Proved, Scope

_NAME = "linear_solve"


@ABSORBS("custom_jvp_call")
def converted(equations: Sequence[Any], position: int, uses: Callable[[Any], int]) -> int:
    """Operators convert what they are constructed of, right before they are solved."""
    end = position
    while end < len(equations) and _gives_back(equations[end]):
        end += 1
    if end == position or end == len(equations) or equations[end].primitive.name != "jit":
        return 1
    solve = equations[end]
    made = [equation.outvars[0] for equation in equations[position:end]]
    once = all(uses(var) == 1 and any(var is atom for atom in solve.invars) for var in made)
    return end + 1 - position if once and _solve_in(solve) is not None else 1


def linear_solve(scope: Scope, group: Sequence[Any]) -> Proved | None:
    """Write `lineax.linear_solve(operator, vector, solver).value` for a call of that function.

    None where it is another function's, where more than the solution is read, and where operator
    or solver cannot be constructed again.
    """
    *before, equation = group
    solve = _solve_in(equation)
    read = [i for i, var in enumerate(equation.outvars) if scope.uses.get(id(var))]
    if solve is None or len(read) != 1:
        return None
    made = {id(each.outvars[0]): each.invars[0] for each in before}
    given = [made.get(id(atom), atom) for atom in equation.invars]
    if any(map(is_literal, given)):
        return None
    inputs = list({id(atom): atom for atom in given}.values())
    slots = {id(atom): Slot(index) for index, atom in enumerate(inputs)}
    claim = Claim(group, inputs, [equation.outvars[read[0]]])
    for expr in _calls(equation, solve, [slots[id(atom)] for atom in given]):
        if scope.writer.prover.proves(expr, claim) == (0,):
            return Proved(scope.fill(expr, inputs), read[0])
    return None


def _gives_back(equation: Any) -> bool:
    """Whether it is a function with a rule of its own that only returns its argument."""
    if equation.primitive.name != "custom_jvp_call" or len(equation.invars) != 1:
        return False
    return not opened(equation.params["call_jaxpr"]).jaxpr.eqns


def _solve_in(equation: Any) -> Any:
    """The solve that a call of lineax's function makes; None for calls of others."""
    if equation.params.get("name") != _NAME:
        return None
    return next((each for each in _program(equation).eqns if _is_solve(each)), None)


def _program(equation: Any) -> Any:
    return opened(equation.params["jaxpr"]).jaxpr


def _is_solve(equation: Any) -> bool:
    named = equation.primitive.name == _NAME and {"treedef", "static"} <= equation.params.keys()
    return named and spelling.package_of(equation.primitive) == "lineax"


def _calls(equation: Any, solve: Any, given: Sequence[Expr]) -> Iterator[Expr]:
    dynamic = iter(solve.invars)
    # Where an operand stands, the static arguments have a mark that is a plain object.
    leaves = [next(dynamic) if type(s) is object else s for s in solve.params["static"]]
    operator, _, vector, options, solver, throw = jax.tree.unflatten(
        solve.params["treedef"], leaves
    )
    if options:
        return
    operands = _origins(_program(equation), given)
    try:
        system = [_spelled(operator, operands), _spelled(vector, operands)]
        made_by = _spelled(solver, operands)
    except (spelling.Unwritable, KeyError, TypeError, ValueError):
        return
    told = {} if throw else {"throw": Atom("False")}
    path = spelling.imported("lineax", _NAME)
    for items in (system, [*system, made_by]):
        yield Attribute(call(path, *items, **told), "value")


def _origins(jaxpr: Any, given: Sequence[Expr]) -> Mapping[int, Expr]:
    """What a jitted function is given, by the variables in it that stand for that.

    A function with a rule of its own that gives back what it takes is passed through.
    """
    found = {id(var): expr for var, expr in zip(jaxpr.invars, given, strict=True)}
    for equation in jaxpr.eqns:
        if _gives_back(equation):
            (taken,), (made,) = equation.invars, equation.outvars
            if id(taken) in found:
                found[id(made)] = found[id(taken)]
    return found


def _spelled(given: Any, operands: Mapping[int, Expr]) -> Expr:
    """An argument: an operand, or an object that is constructed of its fields.

    Raises:
        KeyError: for an array that is no operand.
        Unwritable: for what no text can hold.
    """
    if hasattr(given, "aval"):
        return operands[id(given)]
    if isinstance(given, frozenset):
        return tuple_([_spelled(each, operands) for each in given])
    if not dataclasses.is_dataclass(given):
        return _plain(given)
    made_by = type(given)
    path = spelling.public_path(made_by)
    if path is None:
        raise spelling.Unwritable(given, "its class is not public")
    return call(path, *_arguments(made_by, given, lambda part: _spelled(part, operands)))


def _arguments(made_by: type, given: Any, spell: Callable[[Any], Expr]) -> Iterator[Item]:
    """The fields that a constructor takes and that are not its defaults."""
    for parameter in inspect.signature(made_by).parameters.values():
        part = getattr(given, parameter.name)
        required = parameter.default is inspect.Parameter.empty
        if required:
            yield spell(part)
        elif not _is_default(part, parameter.default):
            yield Keyword(parameter.name, spell(part))


def _is_default(part: Any, default: Any) -> bool:
    if part is default:
        return True
    if isinstance(part, frozenset):
        return not part and not default
    plain = (bool, int, float, str, np.generic)
    return type(part) is type(default) and isinstance(part, plain) and bool(part == default)


def _plain(given: Any) -> Expr:
    """A number, a string, or what a package exports: a function, a tag."""
    if callable(given) or type(given).__module__.partition(".")[0] not in ("builtins", "numpy"):
        path = spelling.public_path(given) if callable(given) else spelling.elsewhere(given)
        if path is None:
            raise spelling.Unwritable(given)
        return Atom(path)
    return value(given)
