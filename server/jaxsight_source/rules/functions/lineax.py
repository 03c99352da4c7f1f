"""Linear solves of lineax, written as the call that created them.

The primitive of lineax keeps operator and solver as objects. lineax jits its function, so the call
is one equation, which is proved like others.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxsight_source.compat.jaxpr_types import Atom as JaxprAtom
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr, Var
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened, substituted
from jaxsight_source.equations.fallback import is_default
from jaxsight_source.equations.registry import ABSORBS
from jaxsight_source.errors import Unwritable
from jaxsight_source.proof.prover import Claim, Proved
from jaxsight_source.text.exprs import FALSE, Item, call, slot, tuple_
from jaxsight_source.values import public_names, spelling
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import with_parts
from jaxsight_source.writing.scope import Scope

_NAME = "linear_solve"
_STAND_IN = "_matvec"
"""The name of an operator's function in a proof, where it evaluates its program."""


@ABSORBS("custom_jvp_call")
def converted(equations: Sequence[Equation], position: int, uses: Callable[[object], int]) -> int:
    """Group a solve with the conversions of its operator's arguments before it."""
    end = position
    while end < len(equations) and _gives_back(equations[end]):
        end += 1
    if end == position or end == len(equations) or equations[end].primitive.name != "jit":
        return 1
    solve = equations[end]
    conversions = [equation.outvars[0] for equation in equations[position:end]]
    once = all(uses(var) == 1 and any(var is atom for atom in solve.invars) for var in conversions)
    return end + 1 - position if once and _solve_in(solve) is not None else 1


def linear_solve(scope: Scope, group: Sequence[Equation]) -> Proved | None:
    """Write `lineax.linear_solve(operator, vector, solver)` for a call of that function.

    Return None if the call is another function's, or if operator or solver cannot be constructed.
    """
    *before, equation = group
    if _solve_in(equation) is None:
        return None
    originals = {id(conversion.outvars[0]): conversion.invars[0] for conversion in before}
    atoms = substituted(equation.invars, originals)
    if any(map(is_literal, atoms)):
        return None
    inputs = list({id(atom): atom for atom in atoms}.values())
    slots = {id(atom): slot(index) for index, atom in enumerate(inputs)}
    solve = _Call.of(equation, [slots[id(atom)] for atom in atoms])
    read = [i for i, var in enumerate(equation.outvars) if scope.uses.get(id(var))]
    ways: list[tuple[object, Callable[[ast.expr], ast.expr]]] = [
        (tuple(range(1, len(equation.outvars))), lambda solution: call("jax.tree.leaves", solution))
    ]
    if len(read) == 1:
        ways.insert(0, (read[0], lambda solution: ast.Attribute(solution, "value")))
    for results, shown in ways:
        outputs = [equation.outvars[i] for i in jax.tree.leaves(results)]
        index = _proved(scope, solve, shown, Claim(group, inputs, outputs))
        if index is not None:
            function = _written(scope, solve, atoms)
            expr = shown(list(solve.spelled(function))[index])
            return Proved(scope.fill(expr, inputs), results)
    return None


def _gives_back(equation: Equation) -> bool:
    """Return whether it is a function with a custom rule that only returns its argument."""
    if equation.primitive.name != "custom_jvp_call" or len(equation.invars) != 1:
        return False
    return not opened(equation.params["call_jaxpr"]).jaxpr.eqns


def _solve_in(equation: Equation) -> Equation | None:
    """Return the solve in a call of lineax's function, or None for other calls."""
    if equation.params.get("name") != _NAME:
        return None
    for inner in _program(equation).eqns:
        named = inner.primitive.name == _NAME and {"treedef", "static"} <= inner.params.keys()
        if named and public_names.package_of(inner.primitive) == "lineax":
            return inner
    return None


def _program(equation: Equation) -> Jaxpr:
    return opened(equation.params["jaxpr"]).jaxpr


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of lineax's function: its arguments, with variables for arrays."""

    operator: Any
    vector: object
    options: object
    solver: object
    throw: bool
    places: Mapping[int, int]
    """The position of the call's operand for each variable, by its id."""
    operands: Sequence[ast.expr]

    @classmethod
    def of(cls, equation: Equation, operands: Sequence[ast.expr]) -> _Call:
        solve = _solve_in(equation)
        assert solve is not None
        dynamic = iter(solve.invars)
        # The static arguments have a plain object as a sentinel for each operand.
        leaves = [next(dynamic) if type(s) is object else s for s in solve.params["static"]]
        arguments = jax.tree.unflatten(solve.params["treedef"], leaves)
        operator, _, vector, options, solver, throw = arguments
        places = _places(_program(equation))
        return cls(operator, vector, options, solver, throw, places, operands)

    @property
    def function(self) -> Any:
        """The function that the operator applies, as a program with captured values, or None."""
        function = getattr(self.operator, "fn", None)
        return function if hasattr(function, "jaxpr") and hasattr(function, "consts") else None

    def spelled(self, function: ast.expr | None) -> Iterator[ast.expr]:
        """Yield calls that may be this one, with an expression for the operator's function.

        Raises:
            KeyError: for an array that is not an operand.
            Unwritable: for a value without an expression.
        """
        if self.options:
            raise Unwritable(self.options)
        operator = self._part(self.operator) if function is None else self._applying(function)
        system = [operator, self._part(self.vector)]
        options = {} if self.throw else {"throw": FALSE}
        path = public_names.imported("lineax", _NAME)
        for arguments in (system, [*system, self._part(self.solver)]):
            yield call(path, *arguments, **options)

    def operand(self, var: Var) -> ast.expr:
        return self.operands[self.places[id(var)]]

    def _applying(self, function: ast.expr) -> ast.expr:
        struct = self.operator.in_structure()
        if not isinstance(struct, jax.ShapeDtypeStruct):
            raise Unwritable(struct)
        tags = self.operator.tags
        options = {"tags": self._part(tags)} if tags else {}
        path = public_names.imported("lineax", type(self.operator).__name__)
        return call(path, function, spelling.struct(struct), **options)

    def _part(self, argument: object) -> ast.expr:
        """Return an argument: an operand, or an object constructed from its fields."""
        if hasattr(argument, "aval"):
            return self.operand(argument)
        if isinstance(argument, frozenset) or type(argument) is tuple:
            return tuple_(map(self._part, argument))
        if not dataclasses.is_dataclass(argument):
            return _plain(argument)
        path = public_names.public_path(type(argument))
        if path is None:
            raise Unwritable(argument, "its class is not public")
        return call(path, *_arguments(argument, self._part))


def _places(jaxpr: Jaxpr) -> Mapping[int, int]:
    """Return the position of the input that each variable stands for, by the variable's id.

    Functions with custom rules that only return their argument are looked through.
    """
    positions = {id(var): position for position, var in enumerate(jaxpr.invars)}
    for equation in jaxpr.eqns:
        if _gives_back(equation):
            (source,), (copy,) = equation.invars, equation.outvars
            if id(source) in positions:
                positions[id(copy)] = positions[id(source)]
    return positions


def _proved(
    scope: Scope, solve: _Call, shown: Callable[[ast.expr], ast.expr], claim: Claim
) -> int | None:
    """Return the position of the proved spelling of a call, or None.

    In the proof, its operator's function evaluates the program.
    """
    prover, function = scope.writer.proofs.prover, solve.function
    stand_in: ast.expr | None = None
    if function is not None:
        prover.names[_STAND_IN] = _evaluating(function.jaxpr)
    try:
        if function is not None:
            stand_in = call(_STAND_IN, *map(solve.operand, function.consts))
        for index, expr in enumerate(solve.spelled(stand_in)):
            results = prover.proves(shown(expr), claim)
            order = jax.tree.leaves(results)
            if results is not None and order == list(range(len(order))):
                return index
    except (Unwritable, KeyError, TypeError, ValueError, AttributeError):
        return None
    finally:
        prover.names.pop(_STAND_IN, None)
    return None


def _evaluating(jaxpr: Jaxpr) -> Callable[..., object]:
    def of(*captured: object) -> Callable[[object], object]:
        def function(x: object) -> object:
            results = evaluate(Program(jaxpr, captured), x)
            return results[0] if len(results) == 1 else tuple(results)

        return function

    return of


def _written(scope: Scope, solve: _Call, atoms: Sequence[JaxprAtom]) -> ast.expr | None:
    """Write the operator's function, which captures values; return None if it has none."""
    if solve.function is None:
        return None
    jaxpr = solve.function.jaxpr
    inside = with_parts(
        Program(jaxpr, ()), constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars], debug_info=None
    )
    captured = [atoms[solve.places[id(var)]] for var in solve.function.consts]
    return scope.function(
        "matvec",
        inside,
        captured,
        lambda inner, inputs, _: inner.parameters(inputs, ["vector"]),
    )


def _arguments(subject: object, spell: Callable[[object], ast.expr]) -> Iterator[Item]:
    """Yield the arguments of a constructor, except defaults."""
    for parameter in inspect.signature(type(subject)).parameters.values():
        part = getattr(subject, parameter.name)
        if parameter.default is inspect.Parameter.empty:
            yield spell(part)
        elif not is_default(part, parameter.default) and not (
            isinstance(part, frozenset) and not part and not parameter.default
        ):
            yield ast.keyword(parameter.name, spell(part))


def _plain(subject: object) -> ast.expr:
    """Return a number, a string, or an object that a package exports, such as a function."""
    if callable(subject) or type(subject).__module__.partition(".")[0] not in ("builtins", "numpy"):
        path = (
            public_names.public_path(subject)
            if callable(subject)
            else public_names.elsewhere(subject)
        )
        if path is None:
            raise Unwritable(subject)
        return path
    return value(subject)
