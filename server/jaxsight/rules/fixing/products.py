"""Find products of matrices in the text that is fixed."""

from __future__ import annotations

import ast

from jaxsight.rules.fixing.context import FixContext

_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")


def factors(context: FixContext, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product of matrices.

    Methods (`a.dot(b)`) are not read: they may be another class's.
    """
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return node.left, node.right
        case ast.Call(args=[left, right], keywords=[]) if context.called(node.func) in _PRODUCTS:
            return left, right
    return None
