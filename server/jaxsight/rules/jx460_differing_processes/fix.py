"""Fix JX460: iterate over the elements of a set in their own order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx460_differing_processes.rule import Unordered
from jaxsight.source.text import Edit


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `sorted(names)` for a set, and for a list or tuple of one."""
    node = context.node
    if not isinstance(context.finding.data, Unordered) or not isinstance(node, ast.expr):
        return
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.expr() as elements]):
            pass
        case elements:
            pass
    text = f"sorted({context.text(elements)})"
    yield Candidate(f"Iterate over `{text}`", (Edit(context.range(node), text),))


REMEDY = Remedy("`sorted(names)`", candidates)
