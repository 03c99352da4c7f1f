"""JX201: a reduction over a tiny axis ends a kernel, where a sum of a few terms would fuse."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading, numbers
from jaxsight.rules.rule import Rule
from jaxsight.units import KIB, size

RULE = Rule(
    "JX201",
    "tiny-reduction",
    "A reduction over a tiny axis ends a kernel.",
    severity="warning",
)
TINY = 8
LEAST = 64 * KIB
_SUM = "x[0] + x[1] + …"
_WRITTEN_OUT = {
    "sum": _SUM, "mean": _SUM, "average": _SUM, "einsum": _SUM, "dot": _SUM, "vdot": _SUM, "var": _SUM, "std": _SUM, "prod": "x[0] * x[1] * …",
    "any": "x[0] | x[1] | …", "all": "x[0] & x[1] & …", "max": "jnp.maximum(x[0], x[1])", "min": "jnp.minimum(x[0], x[1])",
    "norm": "jnp.sqrt(x[0] ** 2 + x[1] ** 2 + …)", "logsumexp": "jnp.logaddexp(x[0], x[1])",
}  # fmt: skip
"""By the function that is called: how it is written out."""
_CALLED = re.compile(r"[\w.]*?\b(?P<name>\w+)\(")
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each such reduction whose kernel another one waits for that could have it in itself: a fusion, not a product or a sort."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    awaited: dict[int, int] = {}
    for edge in graph.edges:
        ends = edge.source, edge.target
        if (
            all(e.what == "kernel" for e in ends)
            and graph.kernels[edge.target.index].kind == "fusion"
        ):
            awaited[edge.source.index] = max(awaited.get(edge.source.index, 0), edge.value.bytes)
    told: set[object] = set()
    for index, kernel in enumerate(graph.kernels):
        step = reading.flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "reduction" or index not in awaited or step is None:
            continue
        axes = numbers(step, "axes")
        place = step.span or step.path
        shape = reading.flow.value(step.operands[0]).shape if step.operands else ()
        if step.primitive not in _REDUCTIONS or not axes or place in told:
            continue
        length = math.prod(shape[axis] for axis in axes if axis < len(shape))
        if not 1 < length <= TINY:
            continue
        stored = reading.flow.value(step.results[0])
        # What passes on may be of a smaller type, but has to be as much.
        if stored.bytes < LEAST or awaited[index] * 2 < stored.bytes:
            continue
        if not reading.wrote(step.path, *_WRITTEN_OUT):
            continue
        called = _CALLED.match(reading.quote(step.path))
        told.add(place)
        form = _WRITTEN_OUT.get(called["name"] if called else "", _SUM)
        yield Noticed(
            f"{reading.quoted(step.path)} reduces {length} numbers at a time, and ends kernel {index + 1} of {graph.kernel_count} for "
            f"that: {size(stored.bytes)} ({stored.text}) are written and read again. Written out over the axis "
            f"(`{form}`) it fuses with what follows.",
            step.path,
        )
