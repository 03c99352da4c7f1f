"""JX307: take the difference of two unsigned arrays that does not wrap around."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes import effects
from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `maximum(a, b) - minimum(a, b)` for `abs(a - b)`.

    The values change on purpose.
    """
    difference = next(iter(asked.nodes), None)
    call = asked.parents.get(difference) if difference is not None else None
    match difference, call:
        case ast.BinOp(op=ast.Sub(), left=a, right=b), ast.Call(keywords=[], args=[_]):
            pass
        case _:
            return
    assert isinstance(call, ast.Call)
    if not asked.jnp or asked.called(call.func).rpartition(".")[2] not in ("abs", "absolute"):
        return
    pair = f"({asked.text(a)}, {asked.text(b)})"
    text = f"{asked.jnp}.maximum{pair} - {asked.jnp}.minimum{pair}"
    yield Candidate(
        "Subtract the smaller from the larger",
        (asked.replace(call, asked.bracketed(call, text)),),
        same=False,
    )


# Numbers that are right, for what it takes to compute them.
REMEDY = Remedy(
    "`jnp.maximum(a, b) - jnp.minimum(a, b)` instead of `jnp.abs(a - b)` (unsafe)",
    candidates,
    trades=effects.ALL,
    costs_any=True,
)
