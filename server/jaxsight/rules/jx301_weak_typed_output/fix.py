"""JX301: specify the dtype of a weakly typed result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Range
from jaxsight.rules.jx301_weak_typed_output.rule import WeakResult

_MAKERS = ("full", "asarray", "array", "arange")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `dtype=` for a call that takes it, and `.astype` of the expression."""
    result = asked.finding.data
    node = next(iter(asked.nodes), None)
    if not isinstance(result, WeakResult) or not asked.jnp or not isinstance(node, ast.expr):
        return
    dtype = f"{asked.jnp}.{result.dtype}"
    title = f"Specify the dtype `{result.dtype}`"
    if isinstance(node, ast.Call) and node.args and not node.keywords:
        called = asked.called(node.func)
        if called.rpartition(".")[2] in _MAKERS and called.startswith("jax.numpy."):
            last = asked.range(node.args[-1]).end
            yield Candidate(title, (Edit(Range(last, last), f", dtype={dtype}"),))
    # The whole expression comes second: another weak number may follow in it.
    whole = node
    for each in asked.around(node):
        if isinstance(each, ast.Return | ast.Assign):
            whole = each.value if each.value is not None else node
            break
        if not isinstance(each, ast.BinOp | ast.UnaryOp):
            break
    for each in dict.fromkeys((node, whole)):
        text = f"{asked.operand(each)}.astype({dtype})"
        yield Candidate(title, (asked.replace(each, text),))


REMEDY = Remedy(
    "an explicit dtype",
    candidates,
)
