"""Helper functions, which `folding` finds, and calls of them.

The text is correct by construction: the equations stay in order, and each helper is that of its
first run. `folding` claims that the runs are equal; the whole text is compared with the program at
the end in any case.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight_source.compat.jaxpr_types import Var
from jaxsight_source.compat.locations import is_backward
from jaxsight_source.compat.staging import is_literal, new_variable
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable
from jaxsight_source.folding import steps
from jaxsight_source.folding.families import captures
from jaxsight_source.folding.steps import Family, FoldedLoop, Returned
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import NONE, binary, call, changed, list_, substituted, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import (
    IndexedPaths,
    Path,
    Step,
    element_name,
    iterated,
    numbered,
    shared_end,
    walk,
    without_number,
)
from jaxsight_source.text.statements import (
    Raw,
    assign,
    define,
    effect,
    names_assigned,
    names_read,
    return_,
    rewritten,
)
from jaxsight_source.writing.scope import WRITTEN, Scope
from jaxsight_source.writing.variables import nested_results, sequence

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


@STRUCTURES(steps.LOOP)
def loop(scope: Scope, step: steps.FoldedStep) -> Proved:
    folded: FoldedLoop = step.family
    first, last = folded.runs[0], folded.runs[-1]
    outer = scope.body
    carried = [_start(scope, folded, init) for init, _ in folded.carried]
    target, values, bindings = _loop_variables(scope, folded)
    scope.body = []
    outside = [*folded.first_values, *(row[0] for row in folded.varying if not is_literal(row[0]))]
    before = [(var, scope.read(var), scope.paths.get(id(var))) for var in outside]
    for variable, name in zip(folded.first_values, carried, strict=True):
        scope.write(variable, ast.Name(name))
    stand_ins: dict[int, object] = {}
    for row, path in bindings:
        var = row[0]
        if is_literal(var):
            stand_ins[id(var)] = var = new_variable(var.aval)
        scope.stand(var, path)
    equations = [
        equation.replace(invars=[stand_ins.get(id(atom), atom) for atom in equation.invars])
        if any(id(atom) in stand_ins for atom in equation.invars)
        else equation
        for equation in first
    ]
    places = [position for _, position in folded.carried]
    sent = [first[position].outvars[output] for position, output in places]
    gathered = [first[position].outvars[output] for position, output in folded.collected]
    finals = [first[position].outvars[output] for position, output in folded.finals]
    scope.equations(equations, [*sent, *gathered, *finals], named=False)
    body, scope.body = scope.body, outer
    for var, expr, own in before:  # operands of the first iteration may be read after the loop
        scope.write(var, expr)
        scope.paths.pop(id(var), None)
        if own is not None:
            scope.paths[id(var)] = own
    named = [scope.operand(var) for var in sent]
    lists = _gather(scope, body, outer, folded, [scope.operand(var) for var in gathered])
    _hand_on(body, carried, named)
    outer.append(ast.For(target, values, body, []))
    for name, (position, output) in zip(carried, places, strict=True):
        scope.write(last[position].outvars[output], ast.Name(name))
    for var, (position, output) in zip(finals, folded.finals, strict=True):
        scope.alias(last[position].outvars[output], var)
    for name in lists:
        count = len(folded.collected)
        for number, run in enumerate(folded.runs):
            for index, (position, output) in enumerate(folded.collected):
                path_steps = [("[", str(number))] + ([("[", str(index))] if count > 1 else [])
                path = Path(name, tuple(path_steps))
                scope.write(run[position].outvars[output], path.expr)
                scope.paths[id(run[position].outvars[output])] = path
        scope.writer.folds.sizes[name,] = len(folded.runs)
    return WRITTEN


def _start(scope: Scope, folded: FoldedLoop, init: object) -> str:
    """Return the name of a carried value: that of its initial value, if nothing else reads it."""
    expr = scope.read(init)
    alone = scope.uses.get(id(init)) == 1 and not any(
        all(run[position].invars[slot] is init for run in folded.runs)
        for position, equation in enumerate(folded.runs[0])
        for slot in range(len(equation.invars))
    )
    alone = alone and not any(any(var is init for var in row) for row in folded.varying)
    if alone and isinstance(expr, ast.Name) and scope.names.owns(expr.id):
        return expr.id
    base = without_number(expr.id) if isinstance(expr, ast.Name) else "carry"
    return scope.assigned(base, expr).id


def _loop_variables(
    scope: Scope, folded: FoldedLoop
) -> tuple[ast.expr, ast.expr, list[tuple[tuple[Any, ...], Path]]]:
    """Return the loop's target and values, and the path that reads each varying value."""
    count = len(folded.runs)
    groups: dict[object, tuple[ast.expr, ast.expr]] = {}
    bindings: list[tuple[tuple[object, ...], Path]] = []
    counters: dict[range, str] = {}
    for row in folded.varying:
        way = walk([None if is_literal(var) else scope.path(var) for var in row])
        if way is not None and (keyed := numbered(way.keys)) is not None:
            before, numbers = keyed
            if numbers not in counters:
                counters[numbers] = scope.names.fresh("i")
            key = ("[", f'f"{before}{{{counters[numbers]}}}"')
            bindings.append((row, Path(way.base.root, (*way.base.steps, key, *way.after))))
            continue
        elements = _elements(scope, way, row[0]) if way is not None else None
        if way is not None and elements is not None:
            group = (way.base, way.keys)
            if group not in groups:
                element = scope.writer.folds.handles.get(way.base.root) or element_name(way.base)
                groups[group] = (ast.Name(scope.names.fresh(element)), elements)
            bindings.append((row, Path(flat(groups[group][0]), way.after)))
            continue
        listed = tuple_(scope.operand(var) for var in row)
        elements = _numbers_apart(scope, listed) if len(row) > _MOST_LISTED else listed
        base = "c"
        if not is_literal(row[0]):
            expr = scope.read(row[0])
            base = without_number(expr.id) if isinstance(expr, ast.Name) else "x"
        name = scope.names.fresh(base)
        groups[id(row)] = (ast.Name(name), elements)
        bindings.append((row, Path(name, ())))
    targets = [target for target, _ in groups.values()]
    values = [elements for _, elements in groups.values()]
    for numbers, name in reversed(counters.items()):
        targets.insert(0, ast.Name(name))
        values.insert(0, _range(numbers))
    if not targets:
        return ast.Name("_"), call("range", ast.Constant(count)), bindings
    if len(targets) == 1:
        return targets[0], values[0], bindings
    return tuple_(targets), call("zip", *values), bindings


def _range(numbers: range) -> ast.expr:
    bounds = [numbers.start, numbers.stop, numbers.step]
    bounds = bounds if numbers.step != 1 else bounds[:2] if numbers.start else bounds[1:2]
    return call("range", *(ast.Constant(bound) for bound in bounds))


_MOST_LISTED = 8
"""The maximum number of values listed in the head of a loop; more are assigned above it, as many
on a line as fit.
"""


def _numbers_apart(scope: Scope, listed: ast.Tuple) -> ast.expr:
    name = scope.names.fresh("values")
    text = ", ".join(flat(number) for number in listed.elts)
    rows = textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)
    scope.body.append(Raw([f"{name} = (", *(f"    {row}" for row in rows), ")  # fmt: skip"]))
    return ast.Name(name)


def _elements(scope: Scope, way: IndexedPaths, var: Var) -> ast.expr | None:
    base = way.base
    if (root := scope.writer.folds.paths.get(id(var))) is not None:
        base = Path(root.root, root.steps[: len(root.steps) - len(way.after) - 1])
    size = scope.writer.folds.sizes.get((base.root, *base.steps))
    return iterated(way.base.expr, way.keys, size)


def _gather(
    scope: Scope,
    body: list[ast.stmt],
    outer: list[ast.stmt],
    folded: FoldedLoop,
    values: list[ast.expr],
) -> list[str]:
    """Append the values that are read of all iterations to a list; return its name."""
    if not values:
        return []
    first = folded.runs[0][folded.collected[0][0]].outvars[folded.collected[0][1]]
    base = "saved"
    if len(values) == 1 and isinstance(first, Returned):
        base = f"{without_number(flat(values[0]))}s"
    elif scope.writer.backward or is_backward(folded.runs[0][0]):
        base = "gradients"
    name = scope.names.fresh(base)
    if len(values) == 1 and isinstance(first, Returned):
        scope.writer.folds.handles[name] = without_number(flat(values[0]))
    outer.append(assign(name, list_(())))
    rest_expr = _rest_of(scope, body, values)
    body.append(
        effect(call(f"{name}.append", rest_expr if rest_expr is not None else sequence(values)))
    )
    return [name]


def _rest_of(scope: Scope, body: list[ast.stmt], values: list[ast.expr]) -> ast.expr | None:
    """Return `rest` for values that are the last results of a call, in order, or None.

    The call is `x, *rest = block(x)`.
    """
    if len(values) < FEWEST_PARTS or not body:
        return None
    match last := body[-1]:
        case ast.Assign([ast.Tuple(targets)]) if len(targets) > len(values) and (
            list(map(flat, targets[-len(values) :])) == list(map(flat, values))
        ):
            rest = ast.Name(scope.names.fresh("grads"))
            last.targets = [tuple_([*targets[: -len(values)], ast.Starred(rest)])]
            return rest
        case _:
            return None


def _hand_on(body: list[ast.stmt], carried: Sequence[str], values: Sequence[ast.expr]) -> None:
    """Assign the values of an iteration to the names that the next one reads."""
    pending = [
        (ast.Name(name), value)
        for name, value in zip(carried, values, strict=True)
        if not (isinstance(value, ast.Name) and _named_so(body, name, value.id))
    ]
    if pending:
        names, values_left = zip(*pending, strict=True)
        body.append(assign(sequence([*names]), sequence([*values_left]), user_named=True))


def _named_so(body: list[ast.stmt], name: str, value: str) -> bool:
    """Rename a value where it is assigned, if its new name is not read afterwards.

    Return whether it was renamed.
    """
    places = [
        position
        for position, statement in enumerate(body)
        if isinstance(statement, ast.Assign) and value in names_assigned([statement])
    ]
    if not places:
        return False
    (position,) = places
    before, after = body[position], body[position + 1 :]
    if name in names_read(after):
        return False
    assert isinstance(before, ast.Assign)
    other = {value: ast.Name(name)}
    target = substituted(before.targets[0], other)
    body[position] = changed(before, targets=[target], user_named=True)
    body[position + 1 :] = rewritten(after, lambda expr: substituted(expr, other))
    return True
