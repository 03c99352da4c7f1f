"""Writes what `folding` found: helper functions and their calls, and Python loops.

The result is correct by construction: the equations stay in order, and each helper's text is that
of its first run. `folding` claims that the runs are equal; the whole text is compared with the
program at the end in any case.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight.interpreters.compat.staging import is_literal
from jaxsight.sourcerizer.compat.sources import is_backward
from jaxsight.sourcerizer.equations.registry import STRUCTURES
from jaxsight.sourcerizer.errors import Unsourceable
from jaxsight.sourcerizer.folding import repeats
from jaxsight.sourcerizer.folding import steps as folding
from jaxsight.sourcerizer.folding.families import captures
from jaxsight.sourcerizer.folding.repeats import Repeat
from jaxsight.sourcerizer.folding.steps import Family, Loop, Returned
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Expr,
    Sequence_,
    Star,
    call,
    is_identifier,
    tuple_,
)
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.text.names import without_number
from jaxsight.sourcerizer.text.paths import (
    Path,
    Step,
    Walk,
    element_name,
    iterated,
    numbered,
    shared_end,
    walk,
)
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Raw,
    Return,
    Statement,
    replaced,
)
from jaxsight.sourcerizer.writing.results import nested_results, sequence
from jaxsight.sourcerizer.writing.scope import WRITTEN, Scope

_FEWEST_PARTS = 2
"""The minimum number of parts of an argument that are passed together."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter of a helper: the inputs that it provides, and the steps from it to each."""

    base: str
    inputs: tuple[int, ...]
    ends: tuple[tuple[Step, ...], ...]


@STRUCTURES(folding.CALL)
def helper_call(scope: Scope, step: folding.Step) -> Proved:
    family: Family = step.family
    results = nested_results(len(step.outvars))
    if family.inside is not None:
        handle, *operands = step.invars
        return Proved(call(scope.read(handle), *map(scope.operand, operands)), results)
    parameters = scope.writer.folds.parameters.get(id(family))
    if parameters is None:
        parameters = scope.writer.folds.parameters[id(family)] = _parameters(scope, family)

    def build(name: str) -> list[Statement]:
        return [_helper(scope, family, name, parameters)]

    function = scope.writer.functions.shared(("fold", id(family)), family, family.name, build)
    passed = [_passed(scope, family, step.index, parameter) for parameter in parameters]
    return Proved(call(function, *passed), results)


def _parameters(scope: Scope, family: Family) -> list[_Parameter]:
    """Return a family's parameters: one for the parts of an argument, one for each other input.

    Inputs that are global in the module need no parameter.
    """
    grouped: dict[Any, list[tuple[int, tuple[Step, ...]]]] = {}
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
    made: list[_Parameter] = []
    for members in grouped.values():
        if len(members) >= _FEWEST_PARTS:
            inputs, ends = zip(*members, strict=True)
            common = _common_start(ends)
            base = _last(Path("p", common)) if common else "p"
            base = "p" if base == family.name else base
            shorter = tuple(end[len(common) :] for end in ends)
            made.append(_Parameter(base, inputs, shorter))
        else:
            ((index, _),) = members
            made.append(_Parameter(_named(scope, family.inputs[index][0]), (index,), ((),)))
    return made


def _common_start(ends: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """Return the first steps that all paths share, excluding the last step of each."""
    first = ends[0]
    count = 0
    while all(count + 1 < len(end) and end[count] == first[count] for end in ends):
        count += 1
    return first[:count]


def _is_global(scope: Scope, row: Sequence[Any]) -> bool:
    """Return whether all runs read the same number, or the same name of the module."""
    if any(var is not row[0] for var in row) or isinstance(row[0], Returned):
        return False
    expr = scope.read(row[0])
    return not isinstance(expr, Atom) or (
        not is_identifier(expr.text) or expr.text in scope.writer.names.module
    )


def _named(scope: Scope, var: Any) -> str:
    """Return a base name for a parameter: that of the value in the first call."""
    if (path := scope.writer.folds.paths.get(id(var))) is not None and path.steps:
        return _last(path)
    expr = scope.read(var)
    return without_number(expr.text) if isinstance(expr, Atom) else "x"


def _last(path: Path) -> str:
    """Return the last word of a path: `w1` for `params["mlp"]["w1"]`."""
    words = [text.strip("\"'") for _, text in path.steps]
    names = [word for word in words if word.isidentifier()]
    return names[-1] if names else path.root


def _passed(scope: Scope, family: Family, run: int, parameter: _Parameter) -> Expr:
    index, end = parameter.inputs[0], parameter.ends[0]
    var = family.inputs[index][run]
    if not end:
        return scope.operand(var)
    path = scope.path(var)
    if path is None or path.steps[len(path.steps) - len(end) :] != end:
        raise Unsourceable(family.name, "an operand is not a part of an argument here")
    return Path(path.root, path.steps[: len(path.steps) - len(end)]).expr


def _helper(scope: Scope, family: Family, name: str, parameters: Sequence[_Parameter]) -> Function:
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
    return Function(name, tuple(named), _body(inner, family, family.runs[0]))


@STRUCTURES(folding.ADDED)
def added(scope: Scope, step: folding.Step) -> Proved:
    """Write a sum in a helper that is called with `None` for an absent operand."""
    equation = step.family
    first, second = (flat(scope.operand(atom)) for atom in equation.invars)
    nothing, other = (first, second) if step.index == 0 else (second, first)
    return Proved(Atom(f"{other} if {nothing} is None else ad.add_jaxvals({first}, {second})"), 0)


def _with_optional(family: Family, run: Sequence[Any]) -> list[Any]:
    """Return the first run of a family, with optional sums where other runs lack the sum."""
    own = {id(var) for item in run for var in item.outvars}
    return [
        folding.optional_sum(item, 0 if id(item.invars[1]) in own else 1)
        if place in family.optional
        else item
        for place, item in enumerate(run)
    ]


def _body(inner: Scope, family: Family, run: Sequence[Any]) -> list[Statement]:
    """Return the statements of a helper, including the helpers that it returns."""
    outputs = [run[place].outvars[result] for place, result in family.outputs]
    needed = [var for nested in family.returned for var in _reads(nested)]
    inner.equations(_with_optional(family, run), [*outputs, *needed], named=False)
    results = [inner.operand(var) for var in outputs]
    for nested in family.returned:
        own = inner.names.fresh(nested.name)
        function = inner.inner()
        seen = captures(nested)
        for place, var in seen.items():
            function.alias(nested.inputs[place][0], var)
        taken = [row[0] for index, row in enumerate(nested.inputs) if index not in seen]
        parameters = function.parameters(taken, list(map(_base_of, taken)))
        before = inner.writer.backward
        inner.writer.backward = True
        statements = _body(function, nested, nested.runs[0])
        inner.writer.backward = before
        inner.body.append(Function(own, tuple(parameters), statements))
        results.append(Atom(own))
    return [*inner.body, Return(sequence(results))]


def _reads(nested: Family) -> list[Any]:
    return [var for var in captures(nested).values() if not is_literal(var)]


def _base_of(var: Any) -> str:
    return "function" if isinstance(var, Returned) else "ct"


@STRUCTURES(repeats.SHARED)
def shared_call(scope: Scope, step: folding.Step) -> Proved:
    repeat: Repeat = step.family
    writer = scope.writer
    bases = [_named(scope, atom) for atom in step.invars]

    def build(name: str) -> list[Statement]:
        inner = Scope.top(writer)
        for var, expr in repeats.fixed_values(step).values():
            inner.write(var, expr)
        parameters = inner.parameters(step.invars, bases)
        writer.folds.repeating.append(repeat)
        inner.equations(step.members, step.outvars, named=False)
        writer.folds.repeating.pop()
        results = [inner.operand(var) for var in step.outvars]
        return [Function(name, tuple(parameters), [*inner.body, Return(sequence(results))])]

    function = writer.functions.shared(("repeat", id(repeat)), repeat, repeat.name, build)
    operands = [scope.operand(atom) for atom in step.invars]
    return Proved(call(function, *operands), nested_results(len(step.outvars)))


@STRUCTURES(folding.LOOP)
def loop(scope: Scope, step: folding.Step) -> Proved:
    found: Loop = step.family
    first, last = found.runs[0], found.runs[-1]
    outer = scope.body
    carried = [_start(scope, found, init, step) for init, _ in found.carried]
    targets, values, bindings = _loop_variables(scope, found)
    scope.body = []
    outside = [*found.taken, *(row[0] for row in found.varying if not is_literal(row[0]))]
    before = [(var, scope.read(var), scope.paths.get(id(var))) for var in outside]
    for taken, name in zip(found.taken, carried, strict=True):
        scope.write(taken, Atom(name))
    stand_ins: dict[int, Any] = {}
    for row, path in bindings:
        var = row[0]
        if is_literal(var):
            stand_ins[id(var)] = var = _StandIn(var.aval)
        scope.stand(var, path)
    items = [_with_stand_ins(item, stand_ins) for item in first]
    places = [place for _, place in found.carried]
    sent = [first[place].outvars[result] for place, result in places]
    gathered = [first[place].outvars[result] for place, result in found.collected]
    finals = [first[place].outvars[result] for place, result in found.finals]
    scope.equations(items, [*sent, *gathered, *finals], named=False)
    body, scope.body = scope.body, outer
    for var, expr, own in before:  # operands of the first iteration may be read after the loop
        scope.write(var, expr)
        scope.paths.pop(id(var), None)
        if own is not None:
            scope.paths[id(var)] = own
    named = [scope.operand(var) for var in sent]
    lists = _gather(scope, body, outer, found, [scope.operand(var) for var in gathered])
    _hand_on(body, carried, named)
    outer.append(For(targets, values, body))
    for name, (place, result) in zip(carried, places, strict=True):
        scope.write(last[place].outvars[result], Atom(name))
    for var, (place, result) in zip(finals, found.finals, strict=True):
        scope.alias(last[place].outvars[result], var)
    for name in lists:
        count = len(found.collected)
        for number, run in enumerate(found.runs):
            for index, (place, result) in enumerate(found.collected):
                steps = [("[", str(number))] + ([("[", str(index))] if count > 1 else [])
                path = Path(name, tuple(steps))
                scope.write(run[place].outvars[result], path.expr)
                scope.paths[id(run[place].outvars[result])] = path
        scope.writer.folds.sizes[name,] = len(found.runs)
    return WRITTEN


@dataclass(eq=False, slots=True)
class _StandIn:
    """A variable in place of a literal that differs between iterations."""

    aval: Any


def _with_stand_ins(item: Any, stand_ins: dict[int, Any]) -> Any:
    if not any(id(atom) in stand_ins for atom in item.invars):
        return item
    return item.replace(invars=[stand_ins.get(id(atom), atom) for atom in item.invars])


def _start(scope: Scope, found: Loop, init: Any, step: Any) -> str:
    """Return the name of a carried value: that of its initial value, if nothing else reads it."""
    expr = scope.read(init)
    alone = scope.uses.get(id(init)) == 1 and not any(
        all(run[place].invars[slot] is init for run in found.runs)
        for place, item in enumerate(found.runs[0])
        for slot in range(len(item.invars))
    )
    alone = alone and not any(any(var is init for var in row) for row in found.varying)
    if alone and isinstance(expr, Atom) and scope.names.owns(expr.text):
        return expr.text
    base = without_number(expr.text) if isinstance(expr, Atom) else "carry"
    name = scope.names.fresh(base if is_identifier(base) else "carry")
    scope.body.append(Assign(name, expr))
    return name


def _loop_variables(
    scope: Scope, found: Loop
) -> tuple[str | Sequence_, Expr, list[tuple[tuple[Any, ...], Path]]]:
    """Return the loop's target and values, and the path that reads each varying value."""
    count = len(found.runs)
    groups: dict[Any, tuple[str, Expr]] = {}
    bindings: list[tuple[tuple[Any, ...], Path]] = []
    counters: dict[range, str] = {}
    for row in found.varying:
        way = walk([None if is_literal(var) else scope.path(var) for var in row])
        if way is not None and (keyed := numbered(way.keys)) is not None:
            before, numbers = keyed
            if numbers not in counters:
                counters[numbers] = scope.names.fresh("i")
            key = ("[", f'f"{before}{{{counters[numbers]}}}"')
            bindings.append((row, Path(way.base.root, (*way.base.steps, key, *way.rest))))
            continue
        elements = _elements(scope, way, row[0]) if way is not None else None
        if way is not None and elements is not None:
            group = (way.base, way.keys)
            if group not in groups:
                groups[group] = (scope.names.fresh(_element(scope, way)), elements)
            bindings.append((row, Path(groups[group][0], way.rest)))
            continue
        listed: Expr = tuple_(scope.operand(var) for var in row)
        if len(row) > _MOST_LISTED and isinstance(listed, Sequence_):
            listed = _numbers_apart(scope, listed)
        name = scope.names.fresh("c" if is_literal(row[0]) else _row_name(scope, row))
        groups[id(row)] = (name, listed)
        bindings.append((row, Path(name, ())))
    names = [name for name, _ in groups.values()]
    values = [elements for _, elements in groups.values()]
    for numbers, name in reversed(counters.items()):
        names.insert(0, name)
        values.insert(0, _range(numbers))
    if not names:
        return "_", call("range", Atom(str(count))), bindings
    if len(names) == 1:
        return names[0], values[0], bindings
    return tuple_(map(Atom, names)), call("zip", *values), bindings


def _range(numbers: range) -> Expr:
    bounds = [numbers.start, numbers.stop, numbers.step]
    bounds = bounds if numbers.step != 1 else bounds[:2] if numbers.start else bounds[1:2]
    return call("range", *(Atom(str(bound)) for bound in bounds))


_MOST_LISTED = 8
"""The maximum number of values listed in the head of a loop; more are assigned above it, as many
on a line as fit.
"""


def _numbers_apart(scope: Scope, listed: Sequence_) -> Expr:
    name = scope.names.fresh("values")
    text = ", ".join(flat(item) for item in listed.items)
    rows = textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)
    scope.body.append(Raw([f"{name} = (", *(f"    {row}" for row in rows), ")  # fmt: skip"]))
    return Atom(name)


def _elements(scope: Scope, way: Walk, var: Any) -> Expr | None:
    base = way.base
    if (root := scope.writer.folds.paths.get(id(var))) is not None:
        base = Path(root.root, root.steps[: len(root.steps) - len(way.rest) - 1])
    size = scope.writer.folds.sizes.get((base.root, *base.steps))
    return iterated(way.base.expr, way.keys, size)


def _element(scope: Scope, way: Walk) -> str:
    handles = scope.writer.folds.handles.get(way.base.root)
    return handles if handles is not None else element_name(way.base)


def _row_name(scope: Scope, row: Sequence[Any]) -> str:
    expr = scope.read(row[0]) if not is_literal(row[0]) else None
    return without_number(expr.text) if isinstance(expr, Atom) and is_identifier(expr.text) else "x"


def _gather(
    scope: Scope, body: list[Statement], outer: list[Statement], found: Loop, values: list[Expr]
) -> list[str]:
    """Append the values that are read of all iterations to a list; return its name."""
    if not values:
        return []
    first = found.runs[0][found.collected[0][0]].outvars[found.collected[0][1]]
    base = "saved"
    if len(values) == 1 and isinstance(first, Returned):
        base = f"{without_number(flat(values[0]))}s"
    elif scope.writer.backward or is_backward(found.runs[0][0]):
        base = "gradients"
    name = scope.names.fresh(base)
    if len(values) == 1 and isinstance(first, Returned):
        scope.writer.folds.handles[name] = without_number(flat(values[0]))
    outer.append(Assign(name, Sequence_("[", ())))
    whole = _rest_of(scope, body, values)
    body.append(Effect(call(f"{name}.append", whole if whole is not None else sequence(values))))
    return [name]


def _rest_of(scope: Scope, body: list[Statement], values: list[Expr]) -> Expr | None:
    """Return `rest` for values that are the last results of a call, in order, or None.

    The call is `x, *rest = block(x)`.
    """
    last = body[-1] if body else None
    if len(values) < _FEWEST_PARTS or not isinstance(last, Assign):
        return None
    if not isinstance(last.targets, Sequence_):
        return None
    items = last.targets.items
    if list(items[-len(values) :]) != values or len(items) == len(values):
        return None
    name = scope.names.fresh("grads")
    last.targets = tuple_([*items[: -len(values)], Star(Atom(name))])
    return Atom(name)


def _hand_on(body: list[Statement], carried: Sequence[str], values: Sequence[Expr]) -> None:
    """Assign the values of an iteration to the names that the next one reads."""
    left = [
        (name, value)
        for name, value in zip(carried, values, strict=True)
        if not (isinstance(value, Atom) and _named_so(body, name, value))
    ]
    if left:
        names, rest = zip(*left, strict=True)
        targets = names[0] if len(names) == 1 else tuple_(map(Atom, names))
        body.append(Assign(targets, sequence(list(rest)), given=True))


def _named_so(body: list[Statement], name: str, value: Atom) -> bool:
    """Rename a value where it is assigned, if its new name is not read afterwards.

    Return whether it was renamed.
    """
    places = [
        place
        for place, statement in enumerate(body)
        if isinstance(statement, Assign) and value in _targets(statement)
    ]
    if not places:
        return False
    (place,) = places
    after = body[place + 1 :]

    reads = False

    def leaf(found: Any) -> Expr:
        nonlocal reads
        reads = reads or found == Atom(name)
        return Atom(name) if found == value else found

    renamed = replaced(after, leaf)
    if reads:
        return False
    statement = body[place]
    assert isinstance(statement, Assign)
    if isinstance(statement.targets, str):
        targets: str | Sequence_ = name
    else:
        targets = tuple_(Atom(name) if item == value else item for item in statement.targets.items)
    body[place] = Assign(targets, statement.value, statement.equations, statement.comment, True)
    body[place + 1 :] = renamed
    return True


def _targets(statement: Assign) -> Sequence[Any]:
    if isinstance(statement.targets, str):
        return [Atom(statement.targets)]
    return statement.targets.items
