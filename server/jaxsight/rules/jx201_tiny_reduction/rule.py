"""JX201: a reduction over a tiny axis prevents fusion; a sum of a few terms would fuse."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from jaxsight.rules.program.steps import numbers
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight_source.units import KIB, size

RULE = Rule(
    "JX201",
    "tiny-reduction",
    "Reduction over a tiny axis prevents fusion.",
    severity="warning",
)
TINY = 8
"""Elements that are reduced at most, a choice: more are a line that nobody writes out, fewer leave
out the axes of small vectors."""
LEAST = 64 * KIB
"""Bytes that the reduction writes at least: 20 ns at 3 TB/s, beside a launch of 3 µs."""
_SUM = "x[0] + x[1] + …"
_NORM = "jnp.sqrt(x[0] ** 2 + x[1] ** 2 + …)"
_WRITTEN_OUT = {
    **dict.fromkeys(("sum", "mean", "average", "einsum", "dot", "vdot", "var", "std"), _SUM),
    "prod": "x[0] * x[1] * …",
    "any": "x[0] | x[1] | …",
    "all": "x[0] & x[1] & …",
    "max": "jnp.maximum(x[0], x[1])",
    "min": "jnp.minimum(x[0], x[1])",
    "norm": _NORM,
    "logsumexp": "jnp.logaddexp(x[0], x[1])",
}
"""The written-out form of each function."""
_CALLED = re.compile(r"[\w.]*?\b(?P<name>\w+)\(")
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find tiny reductions whose kernel is followed by a fusion that could contain them.

    A product or a sort could not.
    """
    graph = view.on_target.graph
    awaited: dict[int, int] = {}
    for edge in graph.edges:
        ends = edge.source, edge.target
        if (
            all(e.what == "kernel" for e in ends)
            and graph.kernels[edge.target.index].kind == "fusion"
        ):
            awaited[edge.source.index] = max(awaited.get(edge.source.index, 0), edge.value.bytes)
    reported: set[object] = set()
    for index, kernel in enumerate(graph.kernels):
        step = view.flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "reduction" or index not in awaited or step is None:
            continue
        axes = numbers(step, "axes")
        origin = step.span or step.path
        shape = view.flow.value(step.operands[0]).shape if step.operands else ()
        if step.primitive not in _REDUCTIONS or not axes or origin in reported:
            continue
        length = math.prod(shape[axis] for axis in axes if axis < len(shape))
        if not 1 < length <= TINY:
            continue
        stored = view.flow.value(step.results[0])
        # The next kernel may read a smaller type, but has to read as many elements.
        if stored.bytes < LEAST or awaited[index] * 2 < stored.bytes:
            continue
        if not view.wrote(step.path, *_WRITTEN_OUT):
            continue
        called = _CALLED.match(view.quote(step.path))
        reported.add(origin)
        form = _WRITTEN_OUT.get(called["name"] if called else "", _SUM)
        # `x[..., 0] + x[..., 1] + …` for the last axis
        before = "..., " if 0 < axes[-1] == len(shape) - 1 else ":, " * axes[-1]
        form = form.replace("x[", f"x[{before}")
        is_one_axis = len(axes) == 1
        over = (
            f"an axis of size {length}" if is_one_axis else f"{len(axes)} axes of {length} elements"
        )
        where = f"kernel {index + 1} of {graph.kernel_count}"
        yield Violation(
            f"reduction over {over} prevents fusion ({size(stored.bytes)} written to memory)",
            step.path,
            help=f"write it out over the axis: `{form}`",
            notes=(f"{stored.text} is written by {where}, and read by another kernel",),
        )
