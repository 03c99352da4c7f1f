"""JX304: write the 32-bit type that JAX uses in place of the 64-bit one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit
from jaxsight.rules.jx304_truncated_to_32_bit.rule import Truncated


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield the expression with the 32-bit type wherever the 64-bit one is named."""
    types = asked.finding.data
    if not isinstance(types, Truncated):
        return
    edits: list[Edit] = []
    for node in asked.find(ast.Attribute, ast.Name, ast.Constant):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == types.requested:
                text = asked.text(node)
                edits.append(asked.replace(node, text.removesuffix(name) + types.used))
            case ast.Constant(value=str(name)) if name == types.requested:
                edits.append(asked.replace(node, asked.text(node).replace(name, types.used)))
    if edits:
        yield Candidate(f"Use `{types.used}`", tuple(edits))


REMEDY = Remedy(
    "the 32-bit type",
    candidates,
)
