"""JX203: an FFT over axes that are not the last ones, with transposes before or after it that cost kernels and temporaries."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.compiler.graph import Graph, Kernel
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import KIB, Reading, size

CODE = "JX203"
LEAST = 64 * KIB


def find(reading: Reading) -> Iterator[Noticed]:
    """Each FFT that takes from or gives to a kernel that does nothing but move elements."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    told: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        if kernel.ends_because != "fft" or not kernel.ends_at or kernel.ends_at in told:
            continue
        moves = [move for move in _neighbours(graph, index) if _moves(reading, graph.kernels[move])]
        moved = sum(graph.kernels[move].bytes_out for move in moves)
        if not moves or moved < LEAST or not _transposed(reading, kernel.ends_at):
            continue
        told.add(kernel.ends_at)
        count = "one kernel transposes" if len(moves) == 1 else f"{len(moves)} kernels transpose"
        yield Noticed(
            CODE,
            f"{reading.quoted(kernel.ends_at)} transforms axes that do not lie last in memory: {count} "
            f"{size(moved)} around it. With the batch axes first and the transformed ones last none is needed.",
            kernel.ends_at,
        )


def _neighbours(graph: Graph, index: int) -> list[int]:
    found: list[int] = []
    for edge in graph.edges:
        if edge.source.what == edge.target.what == "kernel":
            if edge.target.index == index:
                found.append(edge.source.index)
            elif edge.source.index == index:
                found.append(edge.target.index)
    return list(dict.fromkeys(found))


def _moves(reading: Reading, kernel: Kernel) -> bool:
    steps = [s for path in kernel.equations if (s := reading.flow.steps.get(path)) is not None]
    return "transpose" in kernel.what or any(step.primitive == "transpose" for step in steps)


def _transposed(reading: Reading, path: str) -> bool:
    """Whether the program itself transposes before or after the FFT: cuFFT's own wishes are nobody's fault."""
    flow = reading.flow
    fft = flow.steps.get(path)
    if fft is None or fft.primitive != "fft":
        return False
    before = flow.made_by(fft.operands[0])
    after = [step for number in fft.results for step in flow.used_by(number)]
    return any(step.primitive == "transpose" for step in (before, *after) if step is not None)
