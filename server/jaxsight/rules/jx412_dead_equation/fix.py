"""JX412: delete a statement whose result is never used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx412_dead_equation.rule import is_read, name_bound_by
from jaxsight.rules.wording import quoted
from jaxsight.source.text import Edit


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
        yield Candidate(title, (Edit(context.lines(statement), ""),), safe)


REMEDY = Remedy(
    "the deleted statement",
    candidates,
)
