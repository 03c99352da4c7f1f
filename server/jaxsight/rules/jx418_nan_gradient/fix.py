"""JX418: guard the root of a sum of squares with two `where`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx418_nan_gradient.rule import Squares

_AXES = frozenset({"axis", "keepdims"})


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `where(s > 0, sqrt(where(s > 0, s, 1.0)), 0.0)` for `sqrt(s)` and for norms."""
    if not isinstance(context.finding.data, Squares) or not context.jnp:
        return
    for call in context.find(ast.Call):
        if (squares := _squares(context, call)) is None:
            continue
        if (statement := context.statement(call)) is None:
            return
        name, jnp = context.fresh("squares"), context.jnp
        root = f"{jnp}.sqrt({jnp}.where({name} > 0, {name}, 1.0))"
        yield Candidate(
            "Guard the root with two `where`",
            (
                context.before(statement, f"{name} = {squares}"),
                context.replace(call, f"{jnp}.where({name} > 0, {root}, 0.0)"),
            ),
            same=False,  # NaN is no longer what it was
        )
        return


def _squares(context: FixContext, call: ast.Call) -> str | None:
    """Return the text of the sum of squares that a call takes the root of."""
    function = context.called(call.func)
    if function in ("jax.numpy.sqrt", "jax.lax.sqrt") and len(call.args) == 1:
        return context.on_its_own(call.args[0])
    if function != "jax.numpy.linalg.norm" or len(call.args) != 1:
        return None
    if any(key.arg not in _AXES for key in call.keywords):
        return None
    keywords = "".join(f", {key.arg}={context.text(key.value)}" for key in call.keywords)
    return f"{context.jnp}.sum({context.operand(call.args[0])} ** 2{keywords})"


REMEDY = Remedy.correcting("two `where` around the root of a sum of squares", candidates)
