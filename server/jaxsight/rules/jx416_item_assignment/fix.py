"""JX416: assign the updated copy of an array, for all changes in place of a function at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.figures import ALL
from jaxsight.rules.fixing.in_place import in_place, shortened
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.text.item_updates import discarded, updated_array


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the assignment of a dropped update, else updates in place of item assignments."""
    dropped = next((d for node in context.nodes[:1] if (d := _dropped(context, node))), None)
    if dropped is not None:
        statement, text = dropped
        edit = context.replace(statement, text)
        yield Candidate(f"Assign the result: `{shortened(text)}`", (edit,), same=False)
        return
    yield from in_place(context)


def _dropped(context: FixContext, node: ast.AST) -> tuple[ast.stmt, str] | None:
    """Return the statement of an update whose result is dropped, and the one that keeps it."""
    for statement in (node, context.parents.get(node)):
        call = discarded(statement) if isinstance(statement, ast.stmt) else None
        if isinstance(statement, ast.stmt) and call is not None:
            array = context.text(updated_array(call))
            return statement, f"{array} = {context.text(call)}"
    return None


REMEDY = Remedy(
    "`x = x.at[i].set(y)`, and `.add`, `.multiply` and others for `+=`, `*=`…",
    candidates,
    trades=ALL,
    costs_any=True,
)
