"""Find sums of small integers in their own dtype."""

from __future__ import annotations

from jaxsight.rules.jx307_integer_overflow.integers import Integers, holds_note
from jaxsight.rules.program.integers.intervals import limits
from jaxsight.rules.program.matrices import product
from jaxsight.rules.program.steps import parameter
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step

_ACCUMULATES = frozenset({"reduce_sum", "cumsum", "dot_general"})
_FEWEST = 4
"""Elements of a sum, a choice: of fewer, such as channels, the user knows the range."""


def small_accumulator(integers: Integers, step: Step) -> Violation | None:
    """Find sums and products of many small integers in their own dtype."""
    dtype, interval = integers.dtype(step), integers.intervals.result(step)
    within = limits(dtype)
    if step.primitive not in _ACCUMULATES or not integers.is_small(step) or within is None:
        return None
    operand = integers.flow.value(step.operands[0])
    length = max(operand.shape, default=0)
    if interval is None or (within[0] <= interval.least and interval.most <= within[1]):
        return None
    if step.primitive == "dot_general":
        matrices = product(step)
        if matrices is not None and not matrices.contracted[0]:
            return None  # an outer product adds nothing up
        if any(not integers.is_any(number) for number in step.operands):
            return None
        accumulator = str(parameter(step, "preferred_element_type") or dtype)
        if accumulator != dtype:
            return None
        return Violation(
            f"{dtype} matrix product is accumulated in {dtype}",
            step.path,
            help="pass `preferred_element_type=jnp.int32`",
            notes=(holds_note(dtype),),
        )
    if length < _FEWEST:
        return None
    notes = [holds_note(dtype)]
    if step.primitive == "cumsum":
        notes.append("`jnp.cumsum` keeps small dtypes, unlike `jnp.sum`")
    return Violation(
        f"{integers.quoted(step)} accumulates {length:,} elements in {dtype}",
        step.path,
        help="pass `dtype=jnp.int32`",
        notes=tuple(notes),
    )
