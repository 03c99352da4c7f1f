"""Fix JX213: solve the system that an inverse was used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit

_INVERSES = ("jax.numpy.linalg.inv", "jax.scipy.linalg.inv")
_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")


@dataclass(frozen=True, slots=True)
class _Factor:
    """An inverse as it is written in a product."""

    matrix: ast.expr
    turned: bool
    """Whether it is transposed."""
    assigned: ast.Assign | None
    """The statement that gives it a name."""


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `solve(a, b)` for `inv(a) @ b`, and the like with the inverse on the right."""
    for node in asked.nodes:
        factors = _factors(asked, node)
        if factors is None or not isinstance(node, ast.expr):
            continue
        left, right = factors
        for side, each in enumerate((left, right)):
            factor = _inverse(asked, each)
            if factor is None:
                continue
            edits = _solved(asked, node, factor, right if side == 0 else left, side)
            if edits:
                yield Candidate("Solve the system without the inverse", edits)
            return


def _factors(asked: Asked, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product of matrices."""
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return node.left, node.right
        case ast.Call(args=[left, right], keywords=[]) if asked.called(node.func) in _PRODUCTS:
            return left, right
        case ast.Call(func=ast.Attribute(value=left, attr="dot"), args=[right], keywords=[]) if (
            not asked.called(node.func).startswith("jax.")
        ):
            return left, right
    return None


def _inverse(asked: Asked, node: ast.expr) -> _Factor | None:
    """Read a factor as an inverse; a name is looked up if it is assigned once and read once."""
    match node:
        case ast.Attribute(value=inner, attr="T" | "mT"):
            factor = _inverse(asked, inner)
            return _Factor(factor.matrix, not factor.turned, factor.assigned) if factor else None
        case ast.Call(args=[matrix], keywords=[]) if asked.called(node.func) in _INVERSES:
            return _Factor(matrix, False, None)
        case ast.Name(id=name):
            function = asked.function(node)
            named = [
                each
                for each in (ast.walk(function) if function is not None else ())
                if isinstance(each, ast.Name) and each.id == name
            ]
            stored = [each for each in named if isinstance(each.ctx, ast.Store)]
            assigned = asked.parents.get(stored[0]) if len(stored) == 1 else None
            if len(named) != 2 or not isinstance(assigned, ast.Assign):
                return None
            if not isinstance(assigned.value, ast.Call) or len(assigned.targets) != 1:
                return None
            if not asked.begins_line(assigned) or not asked.ends_line(assigned):
                return None
            factor = _inverse(asked, assigned.value)
            return _Factor(factor.matrix, factor.turned, assigned) if factor else None
    return None


def _solved(
    asked: Asked, node: ast.expr, factor: _Factor, other: ast.expr, side: int
) -> tuple[Edit, ...]:
    """Return the edits that put the solution of a system in a product's place.

    `x @ inv(a) @ y` and `inv(a) @ x.T @ y` are read from their ends, where the fewest
    right-hand sides are.
    """
    if not asked.jnp:
        return ()
    matrix = asked.text(factor.matrix)
    matrix_kind = asked.seen(factor.matrix)
    turn = "mT" if matrix_kind is None or len(matrix_kind.shape) > 2 else "T"
    turned = _transposed(asked, factor.matrix, turn)
    outer = asked.parents.get(node)
    kind = asked.seen(other)
    chained = (
        isinstance(outer, ast.BinOp)
        and isinstance(outer.op, ast.MatMult)
        and outer.left is node
        and (side == 1 or (kind is not None and len(kind.shape) > 1))
    )
    place: ast.expr = node
    if isinstance(outer, ast.BinOp) and chained:
        place = outer
        last = asked.text(outer.right) if side == 1 else ""
        together = f"{asked.operand(other)} @ {asked.operand(outer.right)}"
        solution = _solve(asked, turned if factor.turned else matrix, last or together)
        text = f"{asked.operand(other)} @ {solution}" if side == 1 else solution
        if side == 1:
            text = asked.bracketed(place, text)
    elif side == 0:
        text = _solve(asked, turned if factor.turned else matrix, asked.text(other))
    else:
        if kind is None:
            return ()
        vector = len(kind.shape) == 1
        turn = "T" if len(kind.shape) == 2 else "mT"
        right = asked.text(other) if vector else _transposed(asked, other, turn)
        text = _solve(asked, matrix if factor.turned else turned, right)
        text += "" if vector else f".{turn}"
    edits = [asked.replace(place, text)]
    if factor.assigned is not None:
        edits.append(Edit(asked.lines(factor.assigned), ""))
    return tuple(edits)


def _transposed(asked: Asked, node: ast.expr, turn: str) -> str:
    """Return a matrix's text with its last two axes swapped."""
    if isinstance(node, ast.Attribute) and node.attr == turn:
        return asked.text(node.value)
    return f"{asked.operand(node)}.{turn}"


def _solve(asked: Asked, matrix: str, right: str) -> str:
    return f"{asked.jnp}.linalg.solve({matrix}, {right})"


REMEDY = Remedy("`jnp.linalg.solve` instead of a product with the inverse", candidates)
