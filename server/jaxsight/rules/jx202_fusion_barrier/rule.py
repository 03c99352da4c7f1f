"""JX202: an operation is a fusion boundary. Inlay hints show the same; off by default."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation

RULE = Rule(
    "JX202",
    "fusion-barrier",
    "Operation is a fusion boundary.",
    severity="information",
    on=False,
)
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
    reported: set[object] = set()
    for index, kernel in enumerate(graph.kernels):
        step = view.flow.steps.get(kernel.ends_at)
        origin = step.span if step is not None and step.span is not None else kernel.ends_at
        if kernel.ends_because in BARRIERS and origin and origin not in reported:
            reported.add(origin)
            operation, count = kernel.ends_because, graph.kernel_count
            yield Violation(
                f"nothing fuses through {_WORDS.get(operation, f'a {operation}')} "
                f"(kernel {index + 1} of {count})",
                kernel.ends_at,
                notes=(f"{view.quoted(kernel.ends_at)} is its last operation ({kernel.title})",),
            )
