"""Fix JX217: use the final carry of a scan, or the function that gives the total alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, integer, same
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit
from jaxsight.rules.jx217_last_of_scan.rule import Stacked

_TOTALS = {"cumsum": "sum", "cumprod": "prod"}


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield the final carry for the last output, or `sum` for the last of `cumsum`."""
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        name = asked.called(call.func)
        data = asked.finding.data
        if name == "jax.lax.scan" and isinstance(data, Stacked):
            yield from _carried(asked, call) if data.carried else ()
            return
        if name.removeprefix("jax.numpy.") in _TOTALS and len(call.args) == 1:
            yield from _total(asked, call, _TOTALS[name.removeprefix("jax.numpy.")])
            return


def _carried(asked: Asked, call: ast.Call) -> Iterator[Candidate]:
    """Yield `final, _ = scan(…)` for `_, outputs = scan(…)` with `outputs[-1]`."""
    assign, function = asked.parents.get(call), asked.function(call)
    if not isinstance(assign, ast.Assign) or function is None:
        return
    match assign.targets:
        case [ast.Tuple(elts=[ast.Name(id=carry) as first, ast.Name(id=outputs) as second])]:
            pass
        case _:
            return
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    uses = [node for node in names if node.id == outputs and node is not second]
    reads = [asked.parents.get(node) for node in uses]
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
    edits = [asked.replace(node, final) for node in last]
    edits.append(asked.replace(second, "_"))
    if unused:
        edits.append(asked.replace(first, outputs))
    yield Candidate("Use the final carry", (*edits, *_without_output(asked, call, function)))


def _without_output(asked: Asked, call: ast.Call, function: ast.AST) -> tuple[Edit, ...]:
    """Return the edit that makes the output of a body `None`, where it is the carry."""
    body = call.args[0] if call.args else None
    if isinstance(body, ast.Name):
        found = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.FunctionDef) and node.name == body.id
        ]
        returned = [
            node for each in found for node in ast.walk(each) if isinstance(node, ast.Return)
        ]
        result = returned[0].value if len(found) == len(returned) == 1 else None
    else:
        result = body.body if isinstance(body, ast.Lambda) else None
    match result:
        case ast.Tuple(elts=[carry, output]) if same(carry, output):
            return (asked.replace(output, "None"),)
    return ()


def _total(asked: Asked, call: ast.Call, name: str) -> Iterator[Candidate]:
    """Yield `sum(x)` for `cumsum(x)[-1]`."""
    read = asked.parents.get(call)
    seen = asked.seen(call.args[0])
    if seen is None or not isinstance(read, ast.Subscript) or read.value is not call:
        return
    match read.slice:
        case ast.Tuple(elts=[*_, place]) if integer(place) == -1:
            axis = len(seen.shape) - 1
        case place if integer(place) == -1:
            axis = 0
        case _:
            return
    if any(each.arg != "axis" for each in call.keywords):
        return
    along = next((asked.text(each.value) for each in call.keywords if each.arg == "axis"), "")
    if along not in ("", str(axis), str(axis - len(seen.shape))) or (
        not along and len(seen.shape) > 1
    ):
        return
    text = f"{asked.jnp}.{name}({asked.text(call.args[0])}{f', axis={along}' if along else ''})"
    yield Candidate(f"Use `jnp.{name}`", (asked.replace(read, text),))


REMEDY = Remedy("the final carry instead of the last output", candidates)
