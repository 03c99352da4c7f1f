"""Fix JX214: scale by a diagonal, read a diagonal directly, or multiply in the other order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy

_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")
_DIAGONALS = ("jax.numpy.diag", "jax.numpy.diagflat")
_IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield another form for the first expression that is one of the wasteful ones."""
    if not context.jnp:
        return
    for node in context.nodes:
        if not isinstance(node, ast.expr):
            continue
        found = False
        for form in (_scaled, _of_factors, _diagonal, _reordered):
            for candidate in form(context, node):
                found = True
                yield candidate
        if found:
            return


def _factors(context: FixContext, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product of matrices."""
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return node.left, node.right
        case ast.Call(args=[left, right], keywords=[]) if context.called(node.func) in _PRODUCTS:
            return left, right
    return None


def _assigned(context: FixContext, node: ast.expr) -> ast.expr:
    """Return the expression that a name stands for, where it is assigned once."""
    function = context.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return node
    stored = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == node.id and isinstance(each.ctx, ast.Store)
    ]
    parent = context.parents.get(stored[0]) if len(stored) == 1 else None
    if isinstance(parent, ast.Assign) and parent.targets == [stored[0]]:
        return parent.value
    return node


def _scaled(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield `a * d` for `a @ diag(d)`, `d[:, None] * a` for `diag(d) @ a`, `a` for `eye(n) @ a`."""
    pair = _factors(context, node)
    for side, each in enumerate(pair or ()):
        made = _assigned(context, each)
        if pair is None or not isinstance(made, ast.Call):
            continue
        other = pair[1 - side]
        function = context.called(made.func)
        if function in _IDENTITIES:
            yield Candidate(
                "Drop the product with the identity matrix",
                (context.replace(node, context.bracketed(node, context.text(other))),),
            )
        if function not in _DIAGONALS or len(made.args) != 1 or made.keywords:
            continue
        entries, seen = context.operand(made.args[0]), context.seen(other)
        rows = side == 0 and not (seen is not None and len(seen.shape) == 1)
        left, right = f"{entries}[:, None]" if rows else entries, context.operand(other)
        text = f"{left} * {right}" if side == 0 else f"{right} * {left}"
        yield Candidate(
            "Scale by the diagonal",
            (context.replace(node, context.bracketed(node, text)),),
        )


def _of_factors(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield products with the factors of `kron(a, b) @ x` and `outer(a, b) @ x`."""
    pair = _factors(context, node)
    made = _assigned(context, pair[0]) if pair is not None else None
    if pair is None or not isinstance(made, ast.Call) or made.keywords or len(made.args) != 2:
        return
    a, b = map(context.operand, made.args)
    vector = context.operand(pair[1])
    match context.called(made.func):
        case "jax.numpy.kron":
            text = f"({a} @ {vector}.reshape({a}.shape[1], -1) @ {b}.T).ravel()"
        case "jax.numpy.outer":
            text = context.bracketed(node, f"{a} * ({b} @ {vector})")
        case _:
            return
    yield Candidate("Multiply by the factors", (context.replace(node, text),))


def _diagonal(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield `sum(a * b.T)` for `trace(a @ b)`, and the same along an axis for `diag(a @ b)`."""
    match node:
        case ast.Call(args=[whole], keywords=[]) if context.called(node.func).startswith("jax."):
            name = context.called(node.func).rpartition(".")[2]
        case ast.Call(func=ast.Attribute(value=whole, attr=name), args=[], keywords=[]):
            pass
        case _:
            return
    if name not in ("trace", "diag", "diagonal"):
        return
    pair = _factors(context, _assigned(context, whole))
    if pair is None:
        return
    left, right = context.operand(pair[0]), _transposed(context, pair[1])
    total = f"{context.jnp}.sum({left} * {right}{'' if name == 'trace' else ', axis=1'})"
    kind = "trace" if name == "trace" else "diagonal"
    yield Candidate(f"Compute the {kind} alone", (context.replace(node, total),))


def _transposed(context: FixContext, node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return context.operand(node.value)
    return f"{context.operand(node)}.T"


def _reordered(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield `a @ (b @ c)` for `(a @ b) @ c`, and the other way round."""
    pair = _factors(context, node)
    for side, each in enumerate(pair or ()):
        inner = _factors(context, _assigned(context, each))
        if pair is None or inner is None:
            continue
        first, second = map(context.operand, inner)
        if side == 0:
            text = f"{first} @ ({second} @ {context.operand(pair[1])})"
        else:
            text = f"({context.operand(pair[0])} @ {first}) @ {second}"
        yield Candidate(
            "Multiply in the other order",
            (context.replace(node, context.bracketed(node, text)),),
        )


REMEDY = Remedy("the same with fewer operations", candidates, trades=frozenset({figures.LAUNCHED}))
