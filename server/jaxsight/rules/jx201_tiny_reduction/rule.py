"""JX201: a reduction over a tiny axis prevents fusion; a sum of a few terms would fuse."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Proof, Rule, Violation
from jaxsight.rules.text.expressions import integer, keyword
from jaxsight.source.text import Edit
from jaxsight.text.units import KIB, size
from jaxsight.wire.primitives import REDUCTIONS

RULE = Rule(__name__, "Reduction over a tiny axis prevents fusion.", severity="warning")
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


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find tiny reductions whose kernel is followed by a fusion that could contain them.

    A product or a sort could not.
    """
    graph = view.on_target.graph
    awaited: dict[int, int] = {}
    for edge in graph.edges:
        source, target = edge.source, edge.target
        if source.what == target.what == "kernel" and graph.kernels[target.index].kind == "fusion":
            awaited[source.index] = max(awaited.get(source.index, 0), edge.value.bytes)
    for index, kernel in enumerate(graph.kernels):
        step = view.flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "reduction" or index not in awaited or step is None:
            continue
        axes = step.numbers("axes")
        shape = view.flow.value(step.operands[0]).shape if step.operands else ()
        if step.primitive not in REDUCTIONS - {"argmax", "argmin"} or not axes:
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
        form = _WRITTEN_OUT.get(called["name"] if called else "", _SUM)
        # `x[..., 0] + x[..., 1] + …` for the last axis
        before = "..., " if 0 < axes[-1] == len(shape) - 1 else ":, " * axes[-1]
        form = form.replace("x[", f"x[{before}")
        over = f"{len(axes)} axes of {length} elements" if axes[1:] else f"an axis of size {length}"
        where = f"kernel {index + 1} of {graph.kernel_count}"
        yield Violation(
            f"reduction over {over} prevents fusion ({size(stored.bytes)} written to memory)",
            step.path,
            help=f"write it out over the axis: `{form}`",
            notes=(f"{stored.text} is written by {where}, and read by another kernel",),
        )


# The fix: write a reduction out over its tiny axis.

_JOINED = {"sum": " + ", "prod": " * ", "any": " | ", "all": " & "}
_PAIRED = {"max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum"}


@RULE.fixes("the reduction written out over the axis", Proof.FEWER)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the reduction as operators between the slices of its operand.

    An operand that is an expression is assigned to a name first.
    """
    for call in context.find(ast.Call):
        if (read := _read(context, call)) is None:
            continue
        name, operand, indices = read
        statement = context.statement(call)
        is_named = isinstance(operand, ast.Name | ast.Attribute) or statement is None
        array, edits = context.operand(operand), list[Edit]()
        if not is_named and statement is not None:
            array = context.fresh("terms")
            edits.append(context.before(statement, f"{array} = {context.on_its_own(operand)}"))
        first, *others = (f"{array}[{index}]" for index in indices)
        for other in others:
            if name in _JOINED:
                first += f"{_JOINED[name]}{other}"
            else:
                first = f"{context.jnp}.{_PAIRED[name]}({first}, {other})"
        title = f"Write out `{name}` over the axis of size {len(indices)}"
        yield Candidate(title, (*edits, context.replace(call, context.bracketed(call, first))))
        return


def _read(context: FixContext, call: ast.Call) -> tuple[str, ast.expr, list[str]] | None:
    """Return the function's name, the operand, and the indices of its slices along a tiny axis.

    Return `None` if the call has other arguments.
    """
    read = context.array_call(call)
    if read is None:
        return None
    name, operand, arguments = read
    aval = context.aval_of(operand)
    if name not in _JOINED.keys() | _PAIRED or len(arguments) > 1 or aval is None:
        return None
    if any(keyword.arg not in ("axis", "keepdims") for keyword in call.keywords):
        return None
    along = arguments[0] if arguments else keyword(call, "axis")
    rank = len(aval.shape)
    axis = 0 if along is None and rank == 1 else integer(along)
    if axis is None or not -rank <= axis < rank or not 1 < (length := aval.shape[axis]) <= TINY:
        return None
    keep = keyword(call, "keepdims")
    keeps = isinstance(keep, ast.Constant) and bool(keep.value)
    before, after = [":"] * axis, list[str]()
    if axis < 0:
        before, after = ["..."], [":"] * (-axis - 1)
    slices = (f"{index}:{index + 1}" if keeps else str(index) for index in range(length))
    return name, operand, [", ".join((*before, each, *after)) for each in slices]
