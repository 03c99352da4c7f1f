"""Python loops, which `folding` finds.

As for helper functions, each loop is written for its first iteration.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from typing import Any

from jaxsight_source.compat.jaxpr_types import Var
from jaxsight_source.compat.parameters.sources import is_backward
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.registry import STRUCTURES, Binder
from jaxsight_source.folding import steps
from jaxsight_source.folding.steps import FoldedLoop, Returned
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.steps.helpers import FEWEST_PARTS
from jaxsight_source.text.exprs import call, changed, list_, substituted, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import without_number
from jaxsight_source.text.paths import Path, Walk, element_name, iterated, numbered, walk
from jaxsight_source.text.statements import Raw, assign, effect
from jaxsight_source.text.walks import names_assigned, names_read, rewritten
from jaxsight_source.writing.results import sequence
from jaxsight_source.writing.scope import WRITTEN, Scope


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
            stand_ins[id(var)] = var = Binder(var.aval)
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


def _elements(scope: Scope, way: Walk, var: Var) -> ast.expr | None:
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
