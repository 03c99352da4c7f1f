"""JX202: an operation is a fusion boundary. Inlay hints show the same; off by default."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "Operation is a fusion boundary.", severity="information", on=False)
BARRIERS = frozenset(
    {
        "fft", "sort", "matmul", "convolution", "custom call", "host callback",
        "optimization_barrier", "collective",
    }
)  # fmt: skip

_WORDS = {"fft": "an FFT", "optimization_barrier": "an `optimization_barrier`"}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find such operations, one for each place."""
    graph = view.on_target.graph
    for index, kernel in enumerate(graph.kernels):
        if kernel.ends_because in BARRIERS and kernel.ends_at:
            operation, count = kernel.ends_because, graph.kernel_count
            yield Violation(
                f"nothing fuses through {_WORDS.get(operation, f'a {operation}')} "
                f"(kernel {index + 1} of {count})",
                kernel.ends_at,
                notes=(f"{view.quoted(kernel.ends_at)} is its last operation ({kernel.title})",),
            )
