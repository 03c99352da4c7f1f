"""JX304: write the 32-bit type that JAX uses in place of the 64-bit one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx304_truncated_to_32_bit.rule import Truncated
from jaxsight.source.text import Edit


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with the 32-bit type wherever the 64-bit one is named."""
    types = context.finding.data
    if not isinstance(types, Truncated):
        return
    edits: list[Edit] = []
    for node in context.find(ast.expr):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == types.requested:
                text = context.text(node)
                edits.append(context.replace(node, text.removesuffix(name) + types.used))
            case ast.Constant(value=str(name)) if name == types.requested:
                edits.append(context.replace(node, context.text(node).replace(name, types.used)))
    if edits:
        yield Candidate(f"Use `{types.used}`", tuple(edits))


REMEDY = Remedy(
    "the 32-bit type",
    candidates,
)
