"""Fix JX217: use the final carry of a scan, or the function that gives the total alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.fixing.syntax import integer, same
from jaxsight.rules.jx217_last_of_scan.rule import Stacked
from jaxsight.source.text import Edit

_TOTALS = {"cumsum": "sum", "cumprod": "prod"}


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the final carry for the last output, or `sum` for the last of `cumsum`."""
    for call in context.find(ast.Call):
        name = context.called(call.func)
        data = context.finding.data
        if name == "jax.lax.scan" and isinstance(data, Stacked):
            yield from _carried(context, call) if data.carried else ()
            return
        if name.removeprefix("jax.numpy.") in _TOTALS and len(call.args) == 1:
            yield from _total(context, call, _TOTALS[name.removeprefix("jax.numpy.")])
            return


def _carried(context: FixContext, call: ast.Call) -> Iterator[Candidate]:
    """Yield `final, _ = scan(…)` for `_, outputs = scan(…)` with `outputs[-1]`."""
    assign, function = context.parents.get(call), context.function(call)
    if not isinstance(assign, ast.Assign) or function is None:
        return
    match assign.targets:
        case [ast.Tuple(elts=[ast.Name(id=carry) as first, ast.Name(id=outputs) as second])]:
            pass
        case _:
            return
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    uses = [node for node in names if node.id == outputs and node is not second]
    reads = [context.parents.get(node) for node in uses]
    if not uses:
        return
    last = [
        node
        for node in reads
        if isinstance(node, ast.Subscript) and integer(node.slice) == -1 and node.value in uses
    ]
    if len(last) != len(uses):
        return
    unused = carry.startswith("_")
    final = outputs if unused else carry
    edits = [context.replace(node, final) for node in last]
    edits.append(context.replace(second, "_"))
    if unused:
        edits.append(context.replace(first, outputs))
    yield Candidate("Use the final carry", (*edits, *_without_output(context, call, function)))


def _without_output(context: FixContext, call: ast.Call, function: ast.AST) -> tuple[Edit, ...]:
    """Return the edit that makes the output of a body `None`, where it is the carry."""
    body = call.args[0] if call.args else None
    if isinstance(body, ast.Name):
        definitions = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.FunctionDef) and node.name == body.id
        ]
        returned = [
            node
            for definition in definitions
            for node in ast.walk(definition)
            if isinstance(node, ast.Return)
        ]
        returned_value = returned[0].value if len(definitions) == len(returned) == 1 else None
    else:
        returned_value = body.body if isinstance(body, ast.Lambda) else None
    match returned_value:
        case ast.Tuple(elts=[carry, output]) if same(carry, output):
            return (context.replace(output, "None"),)
    return ()


def _total(context: FixContext, call: ast.Call, name: str) -> Iterator[Candidate]:
    """Yield `sum(x)` for `cumsum(x)[-1]`."""
    read = context.parents.get(call)
    aval = context.aval_of(call.args[0])
    if aval is None or not isinstance(read, ast.Subscript) or read.value is not call:
        return
    match read.slice:
        case ast.Tuple(elts=[*_, index]) if integer(index) == -1:
            axis = len(aval.shape) - 1
        case index if integer(index) == -1:
            axis = 0
        case _:
            return
    if any(keyword.arg != "axis" for keyword in call.keywords):
        return
    along = next(
        (context.text(keyword.value) for keyword in call.keywords if keyword.arg == "axis"), ""
    )
    if along not in ("", str(axis), str(axis - len(aval.shape))) or (
        not along and len(aval.shape) > 1
    ):
        return
    text = f"{context.jnp}.{name}({context.text(call.args[0])}{f', axis={along}' if along else ''})"
    yield Candidate(f"Use `jnp.{name}`", (context.replace(read, text),))


REMEDY = Remedy("the final carry instead of the last output", candidates)
