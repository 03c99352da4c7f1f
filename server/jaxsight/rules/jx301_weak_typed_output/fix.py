"""JX301: a weakly typed result, with its type said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Range

_DTYPE = re.compile(r"dtype=jnp\.(?P<dtype>\w+)\)")
_MAKERS = ("full", "asarray", "array", "arange")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """`dtype=` for a call that takes it, else `.astype` of the expression."""
    said = _DTYPE.search(asked.finding.message)
    node = next(iter(asked.nodes), None)
    if said is None or not asked.jnp or not isinstance(node, ast.expr):
        return
    dtype = f"{asked.jnp}.{said['dtype']}"
    title = f"Say the dtype `{said['dtype']}`"
    if isinstance(node, ast.Call) and node.args and not node.keywords:
        called = asked.called(node.func)
        if called.rpartition(".")[2] in _MAKERS and called.startswith("jax.numpy."):
            last = asked.range(node.args[-1]).end
            yield Candidate(title, (Edit(Range(last, last), f", dtype={dtype}"),))
    # Around what it is part of, for another weak number may follow.
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
    "the dtype",
    candidates,
)
