"""JX203: an FFT over non-trailing axes needs transposes, which cost kernels and memory."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import steps_of
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import KIB, size
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.primitives import RESHAPES
from jaxsight.wire.program import Step

RULE = Rule(__name__, "FFT over non-trailing axes requires transposes.", severity="warning")
LEAST = 64 * KIB
"""Bytes that the transposes write at least: 20 ns at 3 TB/s, beside a launch of 3 µs for each. A
choice: lower reports transforms of toy sizes, higher misses those that run in every step."""
_MOVES = RESHAPES | {"transpose"}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find FFTs that the program transposes for, in kernels that do nothing else."""
    graph, flow = view.on_target.graph, view.flow
    for index, kernel in enumerate(graph.kernels):
        fft = flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "fft" or fft is None or fft.primitive != "fft":
            continue
        before, after = _transposed(flow, fft)
        neighbours = dict.fromkeys(
            there.index
            for edge in graph.edges
            if edge.source.what == edge.target.what == "kernel"
            for here, there, is_transposed in (
                (edge.target, edge.source, before),
                (edge.source, edge.target, after),
            )
            if is_transposed and here.index == index
        )
        kernels = map(graph.kernels.__getitem__, neighbours)
        moves = [neighbour for neighbour in kernels if _moves(flow, neighbour)]
        moved = sum(move.bytes_out for move in moves)
        if not moves or moved < LEAST:
            continue
        count = f"{len(moves)} transpose kernel{'s' if len(moves) > 1 else ''}"
        yield Violation(
            f"FFT over non-trailing axes adds {count} ({size(moved)})",
            kernel.ends_at,
            help="move the batch axes first, so that the transformed axes are the last ones",
        )


def _moves(flow: Flow, kernel: Kernel) -> bool:
    """Whether a kernel only moves elements: one that also computes is launched in any layout.

    The kernels that an FFT consists of do not count.
    """
    if steps := steps_of(flow, kernel):
        return all(step.primitive in _MOVES for step in steps)
    return "transpose" in kernel.title or kernel.kind == "copy"


def _transposed(flow: Flow, fft: Step) -> tuple[bool, bool]:
    """Whether the program transposes for an FFT before it, and whether after it.

    Transposes that only cuFFT asks for are not the user's, and those of other FFTs are reported
    there.
    """
    others = {step.span for step in flow.steps.values() if step.primitive == "fft"} - {fft.span}
    maker = flow.producer(fft.operands[0])
    before, after = (
        any(step.primitive == "transpose" and step.span not in others for step in steps)
        for steps in ([maker] if maker is not None else [], flow.used_by(fft.results[0]))
    )
    return before, after
