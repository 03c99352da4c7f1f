"""JX203: an FFT over axes that are not the last ones, with transposes before or after it that cost kernels and temporaries."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.compiler.graph import Graph, Kernel
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import KIB, size

RULE = Rule(
    "JX203",
    "fft-layout",
    "An FFT over axes that are not the last ones is transposed around.",
    severity="warning",
)
LEAST = 64 * KIB
_MOVES = frozenset({"transpose", "reshape", "squeeze", "expand_dims"})


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each FFT that the program transposes for, with a kernel before or after it that does nothing but move elements."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    told: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        if kernel.ends_because != "fft" or not kernel.ends_at or kernel.ends_at in told:
            continue
        before, after = _transposed(reading, kernel.ends_at)
        moves = [
            move
            for move in _neighbours(graph, index, before=before, after=after)
            if _moves(reading, graph.kernels[move])
        ]
        moved = sum(graph.kernels[move].bytes_out for move in moves)
        if not moves or moved < LEAST:
            continue
        told.add(kernel.ends_at)
        count = "one kernel transposes" if len(moves) == 1 else f"{len(moves)} kernels transpose"
        yield Noticed(
            f"{reading.quoted(kernel.ends_at)} transforms axes that do not lie last in memory: {count} "
            f"{size(moved)} around it. With the batch axes first and the transformed ones last none is needed.",
            kernel.ends_at,
        )


def _neighbours(graph: Graph, index: int, *, before: bool, after: bool) -> list[int]:
    """The kernels whose results an FFT's kernel reads, and those that read its own."""
    found: list[int] = []
    for edge in graph.edges:
        if edge.source.what == edge.target.what == "kernel":
            if before and edge.target.index == index:
                found.append(edge.source.index)
            elif after and edge.source.index == index:
                found.append(edge.target.index)
    return list(dict.fromkeys(found))


def _moves(reading: Reading, kernel: Kernel) -> bool:
    """Whether a kernel moves elements and does no more: what computes too is launched in any layout, and what an FFT consists of is its own affair."""
    steps = [s for path in kernel.equations if (s := reading.flow.steps.get(path)) is not None]
    if not steps:
        return "transpose" in kernel.what or kernel.kind == "copy"
    return all(step.primitive in _MOVES for step in steps)


def _transposed(reading: Reading, path: str) -> tuple[bool, bool]:
    """Whether the program itself transposes for an FFT before it, and after it: cuFFT's own wishes are nobody's fault, and other FFTs speak for themselves."""
    flow = reading.flow
    fft = flow.steps.get(path)
    if fft is None or fft.primitive != "fft":
        return False, False
    others = {step.span for step in flow.steps.values() if step.primitive == "fft"} - {fft.span}
    maker = flow.made_by(fft.operands[0])
    users = [step for number in fft.results for step in flow.used_by(number)]
    before, after = (
        any(s is not None and s.primitive == "transpose" and s.span not in others for s in steps)
        for steps in ([maker], users)
    )
    return before, after
