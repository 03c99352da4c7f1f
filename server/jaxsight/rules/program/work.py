"""Which equations are work, kernels of their own that take long on large arrays; kernels' memory.

Elementwise equations fuse into others, and cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jaxsight.rules.program.flow import Flow, Through
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import Folding
from jaxsight.wire.messages.replies import Fold
from jaxsight.wire.primitives import LOOPS
from jaxsight.wire.program import Step

LEAST = 4096
"""Elements that a heavy equation reads and writes at least, a choice: of fewer (16 KiB of
float32) the launch costs the most, and a higher limit misses a row of a batch."""
_HEAVY = frozenset(
    {
        "cholesky", "conv_general_dilated", "custom_linear_solve", "dot_general", "eig", "eigh",
        "fft", "ffi_call", "geqrf", "householder_product", "lu", "pallas_call", "pure_callback",
        "qr", "random_bits", "schur", "sort", "svd", "threefry2x32", "top_k", "triangular_solve",
        "tridiagonal_solve",
    }
)  # fmt: skip


def most_temporaries(graph: Graph) -> int:
    """Return the bytes that the temporaries of kernels take at most, before they are known.

    Each is the result of a kernel, or of a transfer from the host. They count twice, as they may be
    padded, and libraries have temporaries of their own: a larger factor compiles more in vain.
    """
    return 2 * graph.written_bytes + (graph.scratch_at_most or 0)


def steps_of(flow: Flow, kernel: Kernel) -> list[Step]:
    """Return the equations that a kernel computes."""
    return [flow.steps[path] for path in kernel.equations if path in flow.steps]


def is_cheap(flow: Flow, number: int, through: Through, smaller: int, most: int = 200) -> bool:
    """Whether `through` alone computes a value, from known ones and so many times smaller ones."""
    sources = flow.sources(number, through, most)
    return sources is not None and all(
        flow.values[source].is_constant
        or flow.values[source].bytes * smaller <= flow.value(number).bytes
        for source in sources
    )


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
    size = sum(flow.value(number).elements for number in numbers)
    return step.primitive in _HEAVY and size >= LEAST


# When constant folding is worth measuring, and when what was measured is worth a word.

_LEAST_FOLDED = 0.3
"""Seconds of predicted folding from which it is measured; predictions are right to the order of
magnitude.
"""
_SECONDS, _TIMES = 1.0, 2.0
"""How much longer, and how many times as long, compiling takes with folding to be reported, a
choice: less is within what compile times vary by, more hides seconds of each edit."""


def is_worth_measuring(folds: Sequence[Fold]) -> bool:
    """Whether folding is predicted to take so long that it is measured."""
    return sum(fold.seconds for fold in folds) >= _LEAST_FOLDED


def is_slow(measured: Folding) -> bool:
    """Whether folding takes so long that it is worth a word."""
    return (
        measured.folded - measured.unfolded >= _SECONDS
        and measured.folded >= _TIMES * measured.unfolded
    )
