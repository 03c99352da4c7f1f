"""JX217: a scan stacks a value of each iteration, and only that of the last one is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.slices import reads
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import integer, same
from jaxsight.source.text import Edit
from jaxsight.text.units import KIB, size
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Outputs of a scan stacked to read only the last.", severity="warning")

FEWEST = 4
"""Iterations, a choice: what fewer stack is little."""
LEAST = KIB
"""Bytes of the stacked arrays, unless the final carry already is what is read, a choice: lower
reports scans of numbers, higher the losses of a short run."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation | None]:
    """Yield scans of which only the last element is read."""
    for step in view.flow.forward_steps("scan"):
        yield _scan(view, step)


def _scan(view: ProgramView, step: Step) -> Violation | None:
    flow, name = view.flow, view.called(step)
    length = step.number("length", 0)
    if name not in ("scan", "map") or length < FEWEST or not step.bodies:
        return None
    outputs = step.bodies[0].outputs
    last = 0 if step.parameter("reverse") is True else length - 1
    total, carried = 0, True
    for stacked, output in zip(step.results, outputs, strict=False):
        shape = flow.value(stacked).shape
        is_stacked = shape == (length, *flow.value(output).shape)
        if not is_stacked or not _is_only_read_at(flow, stacked, last):
            continue
        total += flow.value(stacked).bytes
        carried &= any(
            flow.alike(row, output)
            for final, row in zip(step.results, outputs, strict=False)
            if flow.value(final).shape == flow.value(row).shape
        )
    if not total or (total < LEAST and not carried):
        return None
    which = "first" if last == 0 else "last"
    does, what = "scan stacks", "outputs"
    help = "use the final carry, and return `None` in place of the output"
    if name == "map":
        does, what, carried = "`map` computes", "results", False
        help = f"call the function with the {which} row alone"
    elif not carried:
        help = "return the value in the carry, and `None` in place of the output"
    return Violation(
        f"{does} {length:,} {what} ({size(total)}), of which only the {which} is read",
        step.path,
        help=help,
        data=carried,
    )


def _is_only_read_at(flow: Flow, number: int, index: int) -> bool:
    """Whether a value is read, and only at one place along its first axis."""
    parts = reads(flow, number, 0) or ()
    return {(part.first, part.last) for part in parts} == {(index, index)}


# The fix: use the final carry of a scan, or the function that gives the total alone.


@RULE.fixes("the final carry instead of the last output")
def candidates(context: FixContext, carried: bool) -> Iterator[Candidate]:
    """Yield the final carry for the last output, which it is where `carried` says so."""
    for call in context.calls("jax.lax.scan") if carried else ():
        yield from _carried(context, call)
        return


def _carried(context: FixContext, call: ast.Call) -> Iterator[Candidate]:
    """Yield `final, _ = scan(…)` for `_, outputs = scan(…)` with `outputs[-1]`."""
    function = context.function(call)
    match context.parents.get(call):
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=carry) as first, ast.Name(id=outputs) as second])]
        ) if function is not None:
            pass
        case _:
            return
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    uses = [node for node in names if node.id == outputs and node is not second]
    last = [
        node
        for node in map(context.parents.get, uses)
        if isinstance(node, ast.Subscript) and integer(node.slice) == -1 and node.value in uses
    ]
    if not uses or len(last) != len(uses):
        return
    unused = carry.startswith("_")
    edits = [context.replace(node, outputs if unused else carry) for node in last]
    edits.append(context.replace(second, "_"))
    if unused:
        edits.append(context.replace(first, outputs))
    yield Candidate("Use the final carry", (*edits, *_without_output(context, call, function)))


def _without_output(context: FixContext, call: ast.Call, function: ast.AST) -> tuple[Edit, ...]:
    """Return the edit that makes the output of a body `None`, where it is the carry."""
    body = call.args[0] if call.args else None
    returned: list[ast.AST] = [body.body] if isinstance(body, ast.Lambda) else []
    if isinstance(body, ast.Name):
        returned = [
            node.value or node
            for definition in ast.walk(function)
            if isinstance(definition, ast.FunctionDef) and definition.name == body.id
            for node in ast.walk(definition)
            if isinstance(node, ast.Return)
        ]
    match returned:
        case [ast.Tuple(elts=[carry, output])] if same(carry, output):
            return (context.replace(output, "None"),)
    return ()
