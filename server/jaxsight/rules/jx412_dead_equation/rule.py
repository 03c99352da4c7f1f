"""JX412: a result is computed and never used."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Result is computed but never used.", severity="hint", on=False)


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield assignments whose name is read nowhere in the function, and whose value HloDCE removes.

    Values that are read for their shape, returned to another caller or computed in a `try` are
    used, and bare calls may be.
    """
    flow = view.flow
    wanted = set(flow.outputs)
    if any(step.backward for step in flow.steps.values()):
        return  # differentiation removes what it does not need
    useful = {
        step.span
        for step in flow.steps.values()
        for number in step.results
        if number in wanted or any(user.span != step.span for user in flow.used_by(number))
    }
    for path, step in flow.steps.items():
        if step.span in useful or "/" in path or not step.results or step.bodies:
            continue
        if any(map(flow.used_by, step.results)):
            continue
        if view.quote(path) and _is_unread(view.around(path)):
            type_ = flow.value(step.results[0]).text
            yield Violation(
                f"result of {quoted(view.quote(path))} is never used",
                path,
                help="remove the assignment",
                notes=(f"XLA removes the {type_}, but it is traced each time",),
            )


def _is_unread(nodes: Sequence[ast.AST]) -> bool:
    """Whether the innermost statement around an expression only binds a name that is never read."""
    statement = next((node for node in nodes if isinstance(node, ast.stmt)), None)
    function = next((node for node in nodes if isinstance(node, FunctionNode)), None)
    if function is None or any(isinstance(node, ast.Try | ast.Lambda) for node in nodes):
        return False
    name = name_bound_by(statement)
    return bool(name) and not name.startswith("_") and not is_read(name, function)


def name_bound_by(statement: ast.AST | None) -> str:
    """Return the name that an assignment binds; empty for other statements, and for several."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def is_read(name: str, function: ast.AST) -> bool:
    """Whether a function reads a name, deletes it, or takes it from outside."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.Global | ast.Nonlocal) and name in node.names)
        for node in ast.walk(function)
    )


# The fix: delete a statement whose result is never used.


@RULE.fixes("the deleted statement")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the text without an assignment to a name that is never read, or a bare expression."""
    node = context.node
    statement = node if isinstance(node, ast.stmt) else context.statement(node)
    function = context.function(statement)
    if statement is None or function is None:
        return
    name = name_bound_by(statement)
    if not isinstance(statement, ast.Expr) and (not name or is_read(name, function)):
        return
    title = f"Delete {quoted(context.text(statement))}"
    parent = context.parents[statement]
    alone = any(getattr(parent, block, None) == [statement] for block in ("body", "orelse"))
    # A call of another function may have effects.
    safe = context.is_pure(statement)
    if alone:
        yield Candidate(title, (context.replace(statement, "pass"),), safe)
    elif context.is_alone(statement):
        yield Candidate(title, (context.without(statement),), safe)
