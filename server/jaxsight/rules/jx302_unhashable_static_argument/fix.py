"""JX302: replace a list among static arguments by a tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the call with tuples in place of the lists among its arguments."""
    for call in context.find(ast.Call):
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        lists = [argument for argument in arguments if isinstance(argument, ast.List)]
        if lists:
            yield Candidate(
                "Pass a tuple instead of the list",
                tuple(context.replace(list_, _tuple(context, list_)) for list_ in lists),
                same=False,
            )
            return


def _tuple(context: FixContext, node: ast.List) -> str:
    inside = context.text(node)[1:-1]
    comma = "," if len(node.elts) == 1 and not inside.rstrip().endswith(",") else ""
    return f"({inside}{comma})"


REMEDY = Remedy(
    "a tuple instead of a list (unsafe)",
    candidates,
)
