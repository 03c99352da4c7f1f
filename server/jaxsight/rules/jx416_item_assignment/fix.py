"""JX416: assign the updated copy of an array, for all changes in place of a function at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.in_place import in_place, shortened
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.text.item_updates import discarded, updated_array


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the assignment of a dropped update, else updates in place of item assignments."""
    for statement in (context.node, next(context.around(context.node), None)):
        call = discarded(statement) if isinstance(statement, ast.stmt) else None
        if isinstance(statement, ast.stmt) and call is not None:
            text = f"{context.text(updated_array(call))} = {context.text(call)}"
            edit = context.replace(statement, text)
            yield Candidate(f"Assign the result: `{shortened(text)}`", (edit,), same=False)
            return
    yield from in_place(context)


REMEDY = Remedy.correcting(
    "`x = x.at[i].set(y)`, and `.add`, `.multiply` and others for `+=`, `*=`…", candidates
)
