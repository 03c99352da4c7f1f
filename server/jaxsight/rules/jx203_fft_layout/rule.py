"""JX203: an FFT over non-trailing axes needs transposes, which cost kernels and memory."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.primitives import RESHAPES
from jaxsight_source.units import KIB, size

RULE = Rule(
    "JX203",
    "fft-layout",
    "FFT over non-trailing axes requires transposes.",
    severity="warning",
)
LEAST = 64 * KIB
"""Bytes that the transposes write at least: 20 ns at 3 TB/s, beside a launch of 3 µs for each. A
choice: lower reports transforms of toy sizes, higher misses those that run in every step."""
_MOVES = RESHAPES | {"transpose"}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find FFTs that the program transposes for, in kernels that do nothing else."""
    graph = view.on_target.graph
    reported: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        if kernel.ends_because != "fft" or not kernel.ends_at or kernel.ends_at in reported:
            continue
        before, after = _transposed(view, kernel.ends_at)
        moves = [
            move
            for move in _neighbours(graph, index, before=before, after=after)
            if _moves(view, graph.kernels[move])
        ]
        moved = sum(graph.kernels[move].bytes_out for move in moves)
        if not moves or moved < LEAST:
            continue
        reported.add(kernel.ends_at)
        count = f"{len(moves)} transpose kernel{'s' if len(moves) > 1 else ''}"
        yield Violation(
            f"FFT over non-trailing axes adds {count} ({size(moved)})",
            kernel.ends_at,
            help="move the batch axes first, so that the transformed axes are the last ones",
        )


def _neighbours(graph: Graph, index: int, *, before: bool, after: bool) -> list[int]:
    """Return the kernels whose results an FFT's kernel reads, and those that read its result."""
    neighbours: list[int] = []
    for edge in graph.edges:
        if edge.source.what == edge.target.what == "kernel":
            if before and edge.target.index == index:
                neighbours.append(edge.source.index)
            elif after and edge.source.index == index:
                neighbours.append(edge.target.index)
    return list(dict.fromkeys(neighbours))


def _moves(view: ProgramView, kernel: Kernel) -> bool:
    """Whether a kernel only moves elements: one that also computes is launched in any layout.

    The kernels that an FFT consists of do not count.
    """
    steps = [s for path in kernel.equations if (s := view.flow.steps.get(path)) is not None]
    if not steps:
        return "transpose" in kernel.title or kernel.kind == "copy"
    return all(step.primitive in _MOVES for step in steps)


def _transposed(view: ProgramView, path: str) -> tuple[bool, bool]:
    """Whether the program transposes for an FFT before it, and whether after it.

    Transposes that only cuFFT asks for are not the user's, and those of other FFTs are reported
    there.
    """
    flow = view.flow
    fft = flow.steps.get(path)
    if fft is None or fft.primitive != "fft":
        return False, False
    other_ffts = {step.span for step in flow.steps.values() if step.primitive == "fft"} - {fft.span}
    maker = flow.made_by(fft.operands[0])
    users = [step for number in fft.results for step in flow.used_by(number)]
    before, after = (
        any(
            s is not None and s.primitive == "transpose" and s.span not in other_ffts for s in steps
        )
        for steps in ([maker], users)
    )
    return before, after
