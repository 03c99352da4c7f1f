"""Fix JX213: solve the system that an inverse was used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.patterns.syntax import factors
from jaxsight.source.text import Edit

_INVERSES = ("jax.numpy.linalg.inv", "jax.scipy.linalg.inv")


@dataclass(frozen=True, slots=True)
class _Factor:
    """An inverse as it is written in a product."""

    matrix: ast.expr
    turned: bool
    """Whether it is transposed."""
    assigned: ast.Assign | None
    """The statement that gives it a name."""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `solve(a, b)` for `inv(a) @ b`, and the like with the inverse on the right."""
    for node in context.nodes:
        pair = _factors(context, node)
        if pair is None or not isinstance(node, ast.expr):
            continue
        for side in (0, 1):
            factor = _inverse(context, pair[side])
            if factor is None:
                continue
            edits = _solved(context, node, factor, pair[1 - side], side)
            if edits:
                yield Candidate("Solve the system without the inverse", edits)
            return


def _factors(context: FixContext, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product of matrices, which may be the method `dot`."""
    match node:
        case ast.Call(func=ast.Attribute(value=left, attr="dot"), args=[right], keywords=[]) if (
            not context.called(node.func).startswith("jax.")
        ):
            return left, right
    return factors(context, node)


def _inverse(context: FixContext, node: ast.expr) -> _Factor | None:
    """Read a factor as an inverse; a name is looked up if it is assigned once and read once."""
    match node:
        case ast.Attribute(value=inner, attr="T" | "mT"):
            factor = _inverse(context, inner)
            return _Factor(factor.matrix, not factor.turned, factor.assigned) if factor else None
        case ast.Call(args=[matrix], keywords=[]) if context.called(node.func) in _INVERSES:
            return _Factor(matrix, False, None)
        case ast.Name():
            assigned = context.parents.get(context.value_of(node))
            if isinstance(assigned, ast.Assign) and context.only_use(assigned) is node:
                factor = _inverse(context, assigned.value)
                return _Factor(factor.matrix, factor.turned, assigned) if factor else None
    return None


def _solved(
    context: FixContext, node: ast.expr, factor: _Factor, right_hand_side: ast.expr, side: int
) -> tuple[Edit, ...]:
    """Return the edits that put the solution of a system in a product's place.

    `x @ inv(a) @ y` and `inv(a) @ x.T @ y` are read from their ends, where the fewest
    right-hand sides are.
    """
    if not context.jnp:
        return ()
    matrix = context.text(factor.matrix)
    matrix_kind = context.aval_of(factor.matrix)
    turn = "mT" if matrix_kind is None or len(matrix_kind.shape) > 2 else "T"
    turned = _transposed(context, factor.matrix, turn)
    outer = context.parents.get(node)
    kind = context.aval_of(right_hand_side)
    chained = (
        isinstance(outer, ast.BinOp)
        and isinstance(outer.op, ast.MatMult)
        and outer.left is node
        and (side == 1 or (kind is not None and len(kind.shape) > 1))
    )
    product: ast.expr = node
    if isinstance(outer, ast.BinOp) and chained:
        product = outer
        last = context.text(outer.right) if side == 1 else ""
        together = f"{context.operand(right_hand_side)} @ {context.operand(outer.right)}"
        solution = _solve(context, turned if factor.turned else matrix, last or together)
        text = f"{context.operand(right_hand_side)} @ {solution}" if side == 1 else solution
        if side == 1:
            text = context.bracketed(product, text)
    elif side == 0:
        text = _solve(context, turned if factor.turned else matrix, context.text(right_hand_side))
    else:
        if kind is None:
            return ()
        vector = len(kind.shape) == 1
        turn = "T" if len(kind.shape) == 2 else "mT"
        right = (
            context.text(right_hand_side) if vector else _transposed(context, right_hand_side, turn)
        )
        text = _solve(context, matrix if factor.turned else turned, right)
        text += "" if vector else f".{turn}"
    edits = [context.replace(product, text)]
    if factor.assigned is not None:
        edits.append(Edit(context.lines(factor.assigned), ""))
    return tuple(edits)


def _transposed(context: FixContext, node: ast.expr, turn: str) -> str:
    """Return a matrix's text with its last two axes swapped."""
    if isinstance(node, ast.Attribute) and node.attr == turn:
        return context.text(node.value)
    return f"{context.operand(node)}.{turn}"


def _solve(context: FixContext, matrix: str, right: str) -> str:
    return f"{context.jnp}.linalg.solve({matrix}, {right})"


REMEDY = Remedy("`jnp.linalg.solve` instead of a product with the inverse", candidates)
