"""JX332: make an array of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx332_not_an_array.rule import ArrayOfItems


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with an array in place of the list, or arrays in a list."""
    data = context.finding.data
    if not isinstance(data, ArrayOfItems) or not context.jnp:
        return
    match data.place, context.node:
        case "brackets", ast.Call(args=[first, *_, last]):
            edits = (
                context.replace(first, f"[{context.text(first)}"),
                context.replace(last, f"{context.text(last)}]"),
            )
            yield Candidate("Put the arrays into a list", edits, same=False)
        case "index", ast.Subscript(slice=ast.List() as items):
            yield _array(context, items)
        case "argument", ast.Call(args=arguments):
            for argument in arguments:
                if isinstance(argument, ast.List | ast.Tuple | ast.ListComp):
                    yield _array(context, argument)
                    return
        case _:
            pass


def _array(context: FixContext, items: ast.expr) -> Candidate:
    edit = context.replace(items, f"{context.jnp}.array({context.text(items)})")
    return Candidate("Make an array of the list", (edit,), same=False)


REMEDY = Remedy("`jnp.array` around a list (unsafe)", candidates)
