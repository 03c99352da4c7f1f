"""Fix JX204: compute a loop-invariant array inside the loop body."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.source.text import Edit
from jaxsight.text.names import bound_in, read_in

_LOOPS = ("jax.lax.fori_loop", "jax.lax.scan", "jax.lax.while_loop")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Copy the assignments of names that a loop body captures into the body.

    Yield first those that the body reads, then these with all that they depend on.
    """
    context = context.of_subject()
    function = context.subject
    if function is None:
        return
    assignments = [
        (statement, names)
        for statement in function.body
        if isinstance(statement, ast.Assign) and (names := set(bound_in(*statement.targets)))
    ]
    for body in _bodies(context, function):
        for deep in (False, True):
            wanted = set(read_in(body))
            chosen: list[ast.Assign] = []
            for statement, names in reversed(assignments):
                if names & wanted and statement.lineno < body.lineno:
                    chosen.insert(0, statement)
                    if deep:
                        wanted.update(read_in(statement.value))
            if chosen:
                yield _moved(context, function, body, chosen)


def _moved(
    context: FixContext,
    function: ast.AST,
    body: ast.FunctionDef | ast.Lambda,
    chosen: list[ast.Assign],
) -> Candidate:
    inside = {node for root in (body, *chosen) for node in ast.walk(root)}
    read_elsewhere = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in inside
    }
    edits: list[Edit] = []
    if isinstance(body, ast.FunctionDef):
        first = body.body[0]
        joint = f"\n{context.indent(first)}"
        edits.append(context.before(first, joint.join(map(context.text, chosen))))
    else:
        statement = next(node for node in context.around(body) if isinstance(node, ast.stmt))
        name, indent = context.fresh("body"), context.indent(statement)
        lines = [f"def {name}({context.text_of_parameters(body)}):"]
        lines += [f"{indent}    {context.text(statement)}" for statement in chosen]
        lines += [f"{indent}    return {context.text(body.body)}", ""]
        edits += [context.before(statement, "\n".join(lines)), context.replace(body, name)]
    edits += [
        Edit(context.lines(assignment), "")
        for assignment in chosen
        if read_elsewhere.isdisjoint(bound_in(*assignment.targets)) and context.is_alone(assignment)
    ]
    names = ", ".join(sorted({name for a in chosen for name in bound_in(*a.targets)}))
    return Candidate(f"Compute `{names}` inside the loop", tuple(edits))


def _bodies(context: FixContext, function: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """Yield the bodies of loops: lambdas in the loop's call, or functions defined around it."""
    named = {node.name: node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or context.called(call.func) not in _LOOPS:
            continue
        for argument in call.args:
            if isinstance(argument, ast.Lambda) and context.statement(argument) is not None:
                yield argument
            body = named.get(argument.id) if isinstance(argument, ast.Name) else None
            if body is not None and context.begins_line(body.body[0]):
                yield body


REMEDY = Remedy(
    "the array computed inside the loop",
    candidates,
    proof=Proof.FEWER,
)
