"""JX201: a reduction over a tiny axis ends a kernel, where a sum of a few terms would fuse."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import KIB, Reading, numbers, size

CODE = "JX201"
TINY = 8
LEAST = 64 * KIB
_CALLS = (
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "norm",
    "einsum",
    "dot",
    "vdot",
    "average",
    "var",
    "std",
    "logsumexp",
    "softmax",
)
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")


def find(reading: Reading) -> Iterator[Noticed]:
    """Each such reduction whose kernel another kernel waits for."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    awaited = {
        edge.source.index
        for edge in graph.edges
        if edge.source.what == "kernel" and edge.target.what == "kernel"
    }
    told: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        step = reading.flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "reduction" or index not in awaited or step is None:
            continue
        axes = numbers(step, "axes")
        shape = reading.flow.value(step.operands[0]).shape if step.operands else ()
        if step.primitive not in _REDUCTIONS or not axes or step.path in told:
            continue
        length = math.prod(shape[axis] for axis in axes if axis < len(shape))
        if not 1 < length <= TINY:
            continue
        told.add(step.path)
        stored = reading.flow.value(step.results[0])
        if stored.bytes < LEAST or not reading.wrote(step.path, *_CALLS):
            continue
        yield Noticed(
            CODE,
            f"{reading.quoted(step.path)} reduces {length} numbers at a time, and ends kernel {index + 1} of {graph.kernel_count} for "
            f"that: {size(stored.bytes)} ({stored.text}) are written and read again. Written out over the axis "
            "(`x[0] + x[1] + …`) it fuses with what follows.",
            step.path,
        )
