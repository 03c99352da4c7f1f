"""JX307: take the difference of two unsigned arrays that does not wrap around."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `maximum(a, b) - minimum(a, b)` for `abs(a - b)`.

    The values change on purpose.
    """
    match context.node, next(context.around(context.node), None):
        case ast.BinOp(op=ast.Sub(), left=a, right=b), ast.Call(keywords=[], args=[_]) as call:
            function, jnp = context.called(call.func).rpartition(".")[2], context.jnp
            if jnp and function in ("abs", "absolute"):
                pair = f"({context.text(a)}, {context.text(b)})"
                text = context.bracketed(call, f"{jnp}.maximum{pair} - {jnp}.minimum{pair}")
                edit = context.replace(call, text)
                yield Candidate("Subtract the smaller from the larger", (edit,), same=False)


REMEDY = Remedy.correcting(
    "`jnp.maximum(a, b) - jnp.minimum(a, b)` instead of `jnp.abs(a - b)` (unsafe)", candidates
)
