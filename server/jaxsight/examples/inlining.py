"""Replace names in an expression by the expressions that they were assigned."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from jaxsight.text.parsing import expression_in

LONGEST = 2000
"""Characters of an expression with its names replaced, a choice: replacing doubles the text with
each name in the worst case; inputs that are written in hovers are shorter."""


def inlined(value: ast.expr | None, values: Mapping[str, ast.expr | None]) -> ast.expr | None:
    """Return a copy with known names replaced by their expressions.

    Returns `None` if one of them has no expression or the result is too long.
    """
    replacer = _Replacer(values)
    copy = expression_in(ast.unparse(value)) if value is not None else None
    replaced: ast.expr | None = replacer.visit(copy) if copy is not None else None
    if replaced is None or replacer.lost or len(ast.unparse(replaced)) > LONGEST:
        return None
    return replaced


class _Replacer(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr | None]) -> None:
        self.known = values
        self.lost = False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.known or not isinstance(node.ctx, ast.Load):
            return node
        value = self.known[node.id]
        self.lost = self.lost or value is None
        return node if value is None else value
