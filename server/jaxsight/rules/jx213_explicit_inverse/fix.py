"""Fix JX213: solve the system that an inverse was used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.source.text import Edit

_INVERSE = "inv(a) | inv(a).T"
_ANY, _VECTOR, _MATRIX = 0, 1, 2
_ROWS = (
    ("inv(a) @ b @ c", _MATRIX, "jnp.linalg.solve({a}, {(b)} @ {(c)})"),
    ("inv(a).T @ b @ c", _MATRIX, "jnp.linalg.solve({a^T}, {(b)} @ {(c)})"),
    ("b @ inv(a) @ c", _ANY, "{(b)} @ jnp.linalg.solve({a}, {c})"),
    ("b @ inv(a).T @ c", _ANY, "{(b)} @ jnp.linalg.solve({a^T}, {c})"),
    ("inv(a) @ b", _ANY, "jnp.linalg.solve({a}, {b})"),
    ("inv(a).T @ b", _ANY, "jnp.linalg.solve({a^T}, {b})"),
    ("b @ inv(a)", _VECTOR, "jnp.linalg.solve({a^T}, {b})"),
    ("b @ inv(a).T", _VECTOR, "jnp.linalg.solve({a}, {b})"),
    ("b @ inv(a)", _MATRIX, "jnp.linalg.solve({a^T}, {b^T}){turn}"),
    ("b @ inv(a).T", _MATRIX, "jnp.linalg.solve({a}, {b^T}){turn}"),
)
"""What is written, how many axes `b` has (two or more are a matrix), and what to write instead.

Chains are solved from their ends, where the fewest right-hand sides are.
"""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `solve(a, b)` for `inv(a) @ b`, and the like with the inverse on the right."""
    for node in context.nodes if context.jnp else ():
        chain = context.parents.get(node)
        products = [chain] if isinstance(chain, ast.BinOp) and chain.left is node else []
        for product in [*products, node]:
            edits = _solved(context, product) if isinstance(product, ast.expr) else ()
            if edits:
                yield Candidate("Solve the system without the inverse", edits)
                return


def _solved(context: FixContext, product: ast.expr) -> tuple[Edit, ...]:
    """Return the edits that put the solution of a system in a product's place.

    A name is looked up if it is assigned once and read once; the assignment goes.
    """
    patterns = SyntaxPatterns(context, looks_up=True, methods=True)
    for pattern, axes, template in _ROWS:
        found = patterns.at(product, pattern)
        if found is None or axes not in (_ANY, min(rank := patterns.rank(found["b"]), _MATRIX)):
            continue
        text = patterns.filled(template, {**found, "turn": ".T" if rank == _MATRIX else ".mT"})
        if template.startswith("{"):
            text = context.bracketed(product, text)
        edits = [context.replace(product, text)]
        for name in (part for part in ast.walk(product) if isinstance(part, ast.Name)):
            assigned = context.parents.get(context.value_of(name))
            if isinstance(assigned, ast.Assign) and patterns.at(assigned.value, _INVERSE):
                if context.only_use(assigned) is not name:
                    return ()
                edits.append(Edit(context.lines(assigned), ""))
        return tuple(edits)
    return ()


REMEDY = Remedy("`jnp.linalg.solve` instead of a product with the inverse", candidates)
