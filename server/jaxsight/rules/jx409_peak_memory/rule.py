"""JX409: the peak memory of a function, and the lines whose temporaries make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.text.units import MIB, size

RULE = Rule(
    "JX409",
    "peak-memory",
    "Temporaries determine the peak memory.",
    severity="information",
)
LARGE = 64 * MIB
_NAMED = 3
_SLACK = 2
"""Allowance for padding, and for temporaries inside library calls."""


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The memory of a function on the target, in bytes."""

    bytes: int
    """Temporaries, inputs and outputs together."""
    temporaries: int


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield one finding, at the largest temporary, if temporaries take much.

    They do if they take 64 MiB or more, and as much as the inputs and outputs or more.
    """
    if view.compiled is None:
        return
    graph = view.compiled.graph
    if graph.written_bytes * _SLACK < LARGE:
        return  # each temporary is the result of a kernel, or of a transfer from the host
    temporaries = view.compiled.temporaries
    fixed = graph.fixed_bytes
    if temporaries < max(LARGE, fixed):
        return
    largest = sorted(graph.temporaries, key=lambda temporary: -temporary.value.bytes)
    places: dict[str, int] = {}
    spans: set[object] = set()
    for temporary in largest:
        kernel = (
            graph.kernels[temporary.producer] if temporary.producer < len(graph.kernels) else None
        )
        at = temporary.equation or (kernel.ends_at if kernel is not None else "")
        at = at or (kernel.equations[-1] if kernel is not None and kernel.equations else "")
        if at in view.flow.steps and view.quote(at):
            span = view.flow.steps[at].span or view.quote(at)
            if span not in spans:
                spans.add(span)
                places[at] = temporary.value.bytes
    named = list(places.items())[:_NAMED]
    if not named:
        return
    total = temporaries + fixed
    yield Violation(
        f"peak memory is {size(total)}, {size(temporaries)} of it temporaries",
        named[0][0],
        help="chunk the work with `jax.lax.map` or `jax.lax.scan`, or rematerialize with "
        "`jax.checkpoint`",
        notes=(
            f"inputs and outputs take {size(fixed)}",
            *(f"{quoted(view.quote(at))} takes {size(count)}" for at, count in named),
        ),
        data=PeakMemory(total, temporaries),
        related=tuple((at, f"{size(count)} here") for at, count in named[1:]),
    )
