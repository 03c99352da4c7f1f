"""JX202: an operation that nothing fuses with. Shown as an inlay hint; as a finding only when it is selected."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX202",
    "fusion-barrier",
    "An operation that nothing fuses with ends a kernel.",
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


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each such operation, once for each place."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    told: set[object] = set()
    for index, kernel in enumerate(graph.kernels):
        step = reading.flow.steps.get(kernel.ends_at)
        place = step.span if step is not None and step.span is not None else kernel.ends_at
        if kernel.ends_because in BARRIERS and place and place not in told:
            told.add(place)
            yield Noticed(
                f"{reading.quoted(kernel.ends_at)} ends kernel {index + 1} of {graph.kernel_count} ({kernel.what}): nothing fuses "
                f"through {_WORDS.get(kernel.ends_because, f'a {kernel.ends_because}')}.",
                kernel.ends_at,
            )
