"""Helper functions, which `folding` finds, and calls of them.

The text is correct by construction: the equations stay in order, and each helper is that of its
first run. `folding` claims that the runs are equal; the whole text is compared with the program at
the end in any case.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight_source.compat.jaxpr_types import Var
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable
from jaxsight_source.folding import steps
from jaxsight_source.folding.families import captures
from jaxsight_source.folding.steps import Family, Returned
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import NONE, binary, call
from jaxsight_source.text.names import without_number
from jaxsight_source.text.paths import Path, Step, shared_end
from jaxsight_source.text.statements import define, return_
from jaxsight_source.writing.results import nested_results, sequence
from jaxsight_source.writing.scope import Scope

FEWEST_PARTS = 2
"""The minimum number of parts of an argument that are passed together: one is passed by itself."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter of a helper: the inputs that it provides, and the steps from it to each."""

    base: str
    inputs: tuple[int, ...]
    ends: tuple[tuple[Step, ...], ...]


@STRUCTURES(steps.CALL)
def helper_call(scope: Scope, step: steps.FoldedStep) -> Proved:
    family: Family = step.family
    results = nested_results(len(step.outvars))
    if family.inside is not None:
        handle, *operands = step.invars
        return Proved(call(scope.read(handle), *map(scope.operand, operands)), results)
    parameters = scope.writer.folds.parameters.get(id(family))
    if parameters is None:
        parameters = scope.writer.folds.parameters[id(family)] = _parameters(scope, family)

    def build(name: str) -> list[ast.stmt]:
        inner = Scope.top(scope.writer)
        named: list[str] = []
        for row in family.inputs:
            if _is_global(scope, row):
                inner.write(row[0], scope.read(row[0]))
        for parameter in parameters:
            own = inner.names.fresh(parameter.base)
            named.append(own)
            for index, end in zip(parameter.inputs, parameter.ends, strict=True):
                inner.stand(family.inputs[index][0], Path(own, end))
        return [define(name, tuple(named), _body(inner, family))]

    function = scope.writer.functions.shared(("fold", id(family)), family, family.name, build)
    passed = [_passed(scope, family, step.index, parameter) for parameter in parameters]
    return Proved(call(function, *passed), results)


def _parameters(scope: Scope, family: Family) -> list[_Parameter]:
    """Return a family's parameters: one for the parts of an argument, one for each other input.

    Inputs that are global in the module need no parameter.
    """
    grouped: dict[object, list[tuple[int, tuple[Step, ...]]]] = {}
    for index, row in enumerate(family.inputs):
        if _is_global(scope, row):
            continue
        paths = [scope.writer.folds.paths.get(id(var)) for var in row]
        end = shared_end(paths) if len({id(var) for var in row}) > 1 else ()
        bases = tuple(
            Path(path.root, path.steps[: len(path.steps) - len(end)]) if path and end else id(var)
            for path, var in zip(paths, row, strict=True)
        )
        grouped.setdefault(bases, []).append((index, end))
    parameters: list[_Parameter] = []
    for members in grouped.values():
        if len(members) >= FEWEST_PARTS:
            inputs, ends = zip(*members, strict=True)
            columns = zip(*(end[:-1] for end in ends), strict=False)
            shared = itertools.takewhile(lambda column: len(set(column)) == 1, columns)
            common = tuple(column[0] for column in shared)
            base = _last(Path("p", common)) if common else "p"
            base = "p" if base == family.name else base
            shorter = tuple(end[len(common) :] for end in ends)
            parameters.append(_Parameter(base, inputs, shorter))
        else:
            ((index, _),) = members
            parameters.append(_Parameter(_named(scope, family.inputs[index][0]), (index,), ((),)))
    return parameters


def _is_global(scope: Scope, row: Sequence[object]) -> bool:
    """Return whether all runs read the same number, or the same name of the module."""
    if any(var is not row[0] for var in row) or isinstance(row[0], Returned):
        return False
    expr = scope.read(row[0])
    return not isinstance(expr, ast.Name) or expr.id in scope.writer.names.module


def _named(scope: Scope, var: Var) -> str:
    """Return a base name for a parameter: that of the value in the first call."""
    if (path := scope.writer.folds.paths.get(id(var))) is not None and path.steps:
        return _last(path)
    expr = scope.read(var)
    return without_number(expr.id) if isinstance(expr, ast.Name) else "x"


def _last(path: Path) -> str:
    """Return the last word of a path: `w1` for `params["mlp"]["w1"]`."""
    words = [text.strip("\"'") for _, text in path.steps]
    names = [word for word in words if word.isidentifier()]
    return names[-1] if names else path.root


def _passed(scope: Scope, family: Family, run: int, parameter: _Parameter) -> ast.expr:
    index, end = parameter.inputs[0], parameter.ends[0]
    var = family.inputs[index][run]
    if not end:
        return scope.operand(var)
    path = scope.path(var)
    if path is None or path.steps[len(path.steps) - len(end) :] != end:
        raise Unsourceable(family.name, "an operand is not a part of an argument here")
    return Path(path.root, path.steps[: len(path.steps) - len(end)]).expr


@STRUCTURES(steps.ADDED)
def added(scope: Scope, step: steps.FoldedStep) -> Proved:
    """Write a sum in a helper that is called with `None` for an absent operand."""
    equation = step.family
    first, second = (scope.operand(atom) for atom in equation.invars)
    absent, single = (first, second) if step.index == 0 else (second, first)
    return Proved(ast.IfExp(binary("is", absent, NONE), single, binary("+", first, second)), 0)


def _body(inner: Scope, family: Family) -> list[ast.stmt]:
    """Return the statements of a helper, including the helpers that it returns."""
    run = family.runs[0]
    outputs = [run[position].outvars[output] for position, output in family.outputs]
    read = (var for nested in family.returned for var in captures(nested).values())
    needed = [var for var in read if not is_literal(var)]
    own = {id(var) for equation in run for var in equation.outvars}
    items: list[Any] = [  # with optional sums where other runs lack the sum
        steps.optional_sum(equation, 0 if id(equation.invars[1]) in own else 1)
        if position in family.optional
        else equation
        for position, equation in enumerate(run)
    ]
    inner.equations(items, [*outputs, *needed], named=False)
    results = [inner.operand(var) for var in outputs]
    for nested in family.returned:
        name = inner.names.fresh(nested.name)
        function = inner.inner()
        captured = captures(nested)
        for position, var in captured.items():
            function.alias(nested.inputs[position][0], var)
        inputs = [row[0] for index, row in enumerate(nested.inputs) if index not in captured]
        bases = ["function" if isinstance(var, Returned) else "ct" for var in inputs]
        parameters = function.parameters(inputs, bases)
        before = inner.writer.backward
        inner.writer.backward = True
        statements = _body(function, nested)
        inner.writer.backward = before
        inner.body.append(define(name, tuple(parameters), statements))
        results.append(ast.Name(name))
    return [*inner.body, return_(sequence(results))]
