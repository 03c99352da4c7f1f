"""JX202: an operation is a fusion boundary. Inlay hints show the same; off by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.view import Reading
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX202",
    "fusion-barrier",
    "Operation is a fusion boundary.",
    severity="information",
    on=False,
)
BARRIERS = frozenset(
    {
        "fft",
        "sort",
        "matmul",
        "convolution",
        "custom call",
        "host callback",
        "optimization_barrier",
        "collective",
    }
)

_WORDS = {"fft": "an FFT", "optimization_barrier": "an `optimization_barrier`"}


@dataclass(frozen=True, slots=True)
class FusionBoundary:
    """An operation that nothing fuses with."""

    operation: str
    kernel: int
    """The kernel that it is the last operation of, counted from 1."""
    kernels: int


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Find such operations, one for each place."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    seen: set[object] = set()
    for index, kernel in enumerate(graph.kernels):
        step = reading.flow.steps.get(kernel.ends_at)
        place = step.span if step is not None and step.span is not None else kernel.ends_at
        if kernel.ends_because in BARRIERS and place and place not in seen:
            seen.add(place)
            operation, count = kernel.ends_because, graph.kernel_count
            yield Noticed(
                f"nothing fuses through {_WORDS.get(operation, f'a {operation}')} "
                f"(kernel {index + 1} of {count})",
                kernel.ends_at,
                notes=(f"{reading.quoted(kernel.ends_at)} is its last operation ({kernel.what})",),
                data=FusionBoundary(operation, index + 1, count),
            )
