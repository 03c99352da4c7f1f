"""JX307: take the difference of two unsigned arrays that does not wrap around."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `maximum(a, b) - minimum(a, b)` for `abs(a - b)`.

    The values change on purpose.
    """
    difference = next(iter(context.nodes), None)
    call = context.parents.get(difference) if difference is not None else None
    match difference, call:
        case ast.BinOp(op=ast.Sub(), left=a, right=b), ast.Call(keywords=[], args=[_]):
            pass
        case _:
            return
    assert isinstance(call, ast.Call)
    if not context.jnp or context.called(call.func).rpartition(".")[2] not in ("abs", "absolute"):
        return
    pair = f"({context.text(a)}, {context.text(b)})"
    text = f"{context.jnp}.maximum{pair} - {context.jnp}.minimum{pair}"
    yield Candidate(
        "Subtract the smaller from the larger",
        (context.replace(call, context.bracketed(call, text)),),
        same=False,
    )


# Numbers that are right, for what it takes to compute them.
REMEDY = Remedy(
    "`jnp.maximum(a, b) - jnp.minimum(a, b)` instead of `jnp.abs(a - b)` (unsafe)",
    candidates,
    trades=figures.ALL,
    costs_any=True,
)
