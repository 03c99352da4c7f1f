"""JX412: delete a statement whose result is never used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.source.text import Edit


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the text without an assignment to a name that is never read, or a bare expression."""
    node = next(iter(context.nodes), None)
    if node is None:
        return
    statement = node if isinstance(node, ast.stmt) else context.statement(node)
    function = context.function(statement) if statement is not None else None
    if statement is None or function is None or not _is_unread(statement, function):
        return
    title = f"Delete `{_short(context.text(statement))}`"
    parent = context.parents[statement]
    alone = any(getattr(parent, block, None) == [statement] for block in ("body", "orelse"))
    # A call of another function may have effects.
    safe = context.is_pure(statement)
    if alone:
        yield Candidate(title, (context.replace(statement, "pass"),), safe)
    elif context.begins_line(statement) and context.ends_line(statement):
        yield Candidate(title, (Edit(context.lines(statement), ""),), safe)


def _is_unread(statement: ast.stmt, function: ast.AST) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return not any(
                isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
                for node in ast.walk(function)
            )
        case ast.Expr():
            return True
        case _:
            return False


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "…"


REMEDY = Remedy(
    "the deleted statement",
    candidates,
)
