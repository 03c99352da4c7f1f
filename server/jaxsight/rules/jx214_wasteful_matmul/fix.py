"""Fix JX214: scale by a diagonal, read a diagonal directly, or multiply in the other order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes import effects
from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy

_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")
_DIAGONALS = ("jax.numpy.diag", "jax.numpy.diagflat")
_IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield another form for the first expression that is one of the wasteful ones."""
    if not asked.jnp:
        return
    for node in asked.nodes:
        if not isinstance(node, ast.expr):
            continue
        found = False
        for form in (_scaled, _of_factors, _diagonal, _reordered):
            for candidate in form(asked, node):
                found = True
                yield candidate
        if found:
            return


def _factors(asked: Asked, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product of matrices."""
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return node.left, node.right
        case ast.Call(args=[left, right], keywords=[]) if asked.called(node.func) in _PRODUCTS:
            return left, right
    return None


def _assigned(asked: Asked, node: ast.expr) -> ast.expr:
    """Return the expression that a name stands for, where it is assigned once."""
    function = asked.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return node
    stored = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == node.id and isinstance(each.ctx, ast.Store)
    ]
    parent = asked.parents.get(stored[0]) if len(stored) == 1 else None
    if isinstance(parent, ast.Assign) and parent.targets == [stored[0]]:
        return parent.value
    return node


def _scaled(asked: Asked, node: ast.expr) -> Iterator[Candidate]:
    """Yield `a * d` for `a @ diag(d)`, `d[:, None] * a` for `diag(d) @ a`, `a` for `eye(n) @ a`."""
    pair = _factors(asked, node)
    for side, each in enumerate(pair or ()):
        made = _assigned(asked, each)
        if pair is None or not isinstance(made, ast.Call):
            continue
        other = pair[1 - side]
        function = asked.called(made.func)
        if function in _IDENTITIES:
            yield Candidate(
                "Drop the product with the identity matrix",
                (asked.replace(node, asked.bracketed(node, asked.text(other))),),
            )
        if function not in _DIAGONALS or len(made.args) != 1 or made.keywords:
            continue
        entries, seen = asked.operand(made.args[0]), asked.seen(other)
        rows = side == 0 and not (seen is not None and len(seen.shape) == 1)
        left, right = f"{entries}[:, None]" if rows else entries, asked.operand(other)
        text = f"{left} * {right}" if side == 0 else f"{right} * {left}"
        yield Candidate(
            "Scale by the diagonal",
            (asked.replace(node, asked.bracketed(node, text)),),
        )


def _of_factors(asked: Asked, node: ast.expr) -> Iterator[Candidate]:
    """Yield products with the factors of `kron(a, b) @ x` and `outer(a, b) @ x`."""
    pair = _factors(asked, node)
    made = _assigned(asked, pair[0]) if pair is not None else None
    if pair is None or not isinstance(made, ast.Call) or made.keywords or len(made.args) != 2:
        return
    a, b = map(asked.operand, made.args)
    vector = asked.operand(pair[1])
    match asked.called(made.func):
        case "jax.numpy.kron":
            text = f"({a} @ {vector}.reshape({a}.shape[1], -1) @ {b}.T).ravel()"
        case "jax.numpy.outer":
            text = asked.bracketed(node, f"{a} * ({b} @ {vector})")
        case _:
            return
    yield Candidate("Multiply by the factors", (asked.replace(node, text),))


def _diagonal(asked: Asked, node: ast.expr) -> Iterator[Candidate]:
    """Yield `sum(a * b.T)` for `trace(a @ b)`, and the same along an axis for `diag(a @ b)`."""
    match node:
        case ast.Call(args=[whole], keywords=[]) if asked.called(node.func).startswith("jax."):
            name = asked.called(node.func).rpartition(".")[2]
        case ast.Call(func=ast.Attribute(value=whole, attr=name), args=[], keywords=[]):
            pass
        case _:
            return
    if name not in ("trace", "diag", "diagonal"):
        return
    pair = _factors(asked, _assigned(asked, whole))
    if pair is None:
        return
    left, right = asked.operand(pair[0]), _transposed(asked, pair[1])
    total = f"{asked.jnp}.sum({left} * {right}{'' if name == 'trace' else ', axis=1'})"
    kind = "trace" if name == "trace" else "diagonal"
    yield Candidate(f"Compute the {kind} alone", (asked.replace(node, total),))


def _transposed(asked: Asked, node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return asked.operand(node.value)
    return f"{asked.operand(node)}.T"


def _reordered(asked: Asked, node: ast.expr) -> Iterator[Candidate]:
    """Yield `a @ (b @ c)` for `(a @ b) @ c`, and the other way round."""
    pair = _factors(asked, node)
    for side, each in enumerate(pair or ()):
        inner = _factors(asked, _assigned(asked, each))
        if pair is None or inner is None:
            continue
        first, second = map(asked.operand, inner)
        if side == 0:
            text = f"{first} @ ({second} @ {asked.operand(pair[1])})"
        else:
            text = f"({asked.operand(pair[0])} @ {first}) @ {second}"
        yield Candidate(
            "Multiply in the other order",
            (asked.replace(node, asked.bracketed(node, text)),),
        )


REMEDY = Remedy("the same with fewer operations", candidates, trades=frozenset({effects.LAUNCHED}))
