"""Which equations are work: those that are kernels of their own, and take long on large arrays.

Elementwise equations fuse into others, and cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import elements
from jaxsight.wire.primitives import LOOPS
from jaxsight.wire.program import Step

LEAST = 4096
"""Elements that a heavy equation reads and writes at least; below, launching it costs the most."""
_HEAVY = frozenset(
    {
        "cholesky", "conv_general_dilated", "custom_linear_solve", "dot_general", "eig", "eigh",
        "fft", "ffi_call", "geqrf", "householder_product", "lu", "pallas_call", "pure_callback",
        "qr", "random_bits", "schur", "sort", "svd", "threefry2x32", "top_k", "triangular_solve",
        "tridiagonal_solve",
    }
)  # fmt: skip


def first_work(
    flow: Flow, numbers: Iterable[int], through: Callable[[Step], bool], most: int = 200
) -> Step | None:
    """Return an equation of work, of those that some values are computed by and `through` admits.

    Args:
        flow: the program.
        numbers: the values.
        through: whether an equation counts, and those before it may.
        most: how many equations to look at for each value.
    """
    steps = (step for number in numbers for step in flow.backwards(number, through, most))
    return next((step for step in steps if _is_work(flow, step) and through(step)), None)


def _is_work(flow: Flow, step: Step) -> bool:
    """Whether an equation is a loop, or a heavy one on arrays that are not small."""
    if step.primitive in LOOPS:
        return True
    numbers = {*step.operands, *step.results}
    size = sum(elements(flow.value(number)) for number in numbers)
    return step.primitive in _HEAVY and size >= LEAST
