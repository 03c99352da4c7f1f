"""Fix JX214: scale by a diagonal, read a diagonal directly, or multiply in the other order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.products import factors
from jaxsight.rules.fixing.remedy import Remedy

_DIAGONALS = ("jax.numpy.diag", "jax.numpy.diagflat")
_IDENTITIES = ("jax.numpy.eye", "jax.numpy.identity")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield another form for the first expression that is one of the wasteful ones."""
    if not context.jnp:
        return
    for node in context.nodes:
        if not isinstance(node, ast.expr):
            continue
        is_proposed = False
        for form in (_scaled, _of_factors, _diagonal, _reordered):
            for candidate in form(context, node):
                is_proposed = True
                yield candidate
        if is_proposed:
            return


def _assigned(context: FixContext, node: ast.expr) -> ast.expr:
    """Return the expression that a name stands for, where it is assigned once."""
    function = context.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return node
    stored = [
        part
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store)
    ]
    parent = context.parents.get(stored[0]) if len(stored) == 1 else None
    if isinstance(parent, ast.Assign) and parent.targets == [stored[0]]:
        return parent.value
    return node


def _scaled(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield `a * d` for `a @ diag(d)`, `d[:, None] * a` for `diag(d) @ a`, `a` for `eye(n) @ a`."""
    pair = factors(context, node)
    for side, factor in enumerate(pair or ()):
        call = _assigned(context, factor)
        if pair is None or not isinstance(call, ast.Call):
            continue
        matrix = pair[1 - side]
        function = context.called(call.func)
        if function in _IDENTITIES:
            yield Candidate(
                "Drop the product with the identity matrix",
                (context.replace(node, context.bracketed(node, context.text(matrix))),),
            )
        if function not in _DIAGONALS or len(call.args) != 1 or call.keywords:
            continue
        entries, aval = context.operand(call.args[0]), context.aval_of(matrix)
        rows = side == 0 and not (aval is not None and len(aval.shape) == 1)
        left, right = f"{entries}[:, None]" if rows else entries, context.operand(matrix)
        text = f"{left} * {right}" if side == 0 else f"{right} * {left}"
        yield Candidate(
            "Scale by the diagonal",
            (context.replace(node, context.bracketed(node, text)),),
        )


def _of_factors(context: FixContext, node: ast.expr) -> Iterator[Candidate]:
    """Yield products with the factors of `kron(a, b) @ x` and `outer(a, b) @ x`."""
    pair = factors(context, node)
    call = _assigned(context, pair[0]) if pair is not None else None
    if pair is None or not isinstance(call, ast.Call) or call.keywords or len(call.args) != 2:
        return
    a, b = map(context.operand, call.args)
    vector = context.operand(pair[1])
    match context.called(call.func):
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
        case ast.Call(args=[argument], keywords=[]) if context.called(node.func).startswith("jax."):
            name = context.called(node.func).rpartition(".")[2]
        case ast.Call(func=ast.Attribute(value=argument, attr=name), args=[], keywords=[]):
            pass
        case _:
            return
    if name not in ("trace", "diag", "diagonal"):
        return
    pair = factors(context, _assigned(context, argument))
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
    pair = factors(context, node)
    for side, factor in enumerate(pair or ()):
        inner = factors(context, _assigned(context, factor))
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
