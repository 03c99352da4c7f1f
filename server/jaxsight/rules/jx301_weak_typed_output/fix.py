"""JX301: specify the dtype of a weakly typed result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx301_weak_typed_output.rule import WeakResult
from jaxsight.source.text import Edit, Range

_MAKERS = ("full", "asarray", "array", "arange")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `dtype=` for a call that takes it, and `.astype` of the expression."""
    weak = context.finding.data
    node = next(iter(context.nodes), None)
    if not isinstance(weak, WeakResult) or not context.jnp or not isinstance(node, ast.expr):
        return
    dtype = f"{context.jnp}.{weak.dtype}"
    title = f"Specify the dtype `{weak.dtype}`"
    if isinstance(node, ast.Call) and node.args and not node.keywords:
        called = context.called(node.func)
        if called.rpartition(".")[2] in _MAKERS and called.startswith("jax.numpy."):
            last = context.range(node.args[-1]).end
            yield Candidate(title, (Edit(Range(last, last), f", dtype={dtype}"),))
    # The whole expression comes second: another weak number may follow in it.
    expression = node
    for part in context.around(node):
        if isinstance(part, ast.Return | ast.Assign):
            expression = part.value if part.value is not None else node
            break
        if not isinstance(part, ast.BinOp | ast.UnaryOp):
            break
    for part in dict.fromkeys((node, expression)):
        text = f"{context.operand(part)}.astype({dtype})"
        yield Candidate(title, (context.replace(part, text),))


REMEDY = Remedy(
    "an explicit dtype",
    candidates,
)
