"""Figures of kernel graphs that nobody compiled."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.figures.figures import AnyFigures, Figures
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import AHEAD_OF_TIME, Compile, Compiled, Memory
from jaxsight.wire.messages.replies import Lowered, LoweredEquation


def made(
    graph: Graph,
    target: str = "cuda:h100",
    hlo: str = "",
    equations: Sequence[LoweredEquation] = (),
) -> AnyFigures:
    """Return the figures of a graph, whose program needs no temporaries."""
    compiled = Compiled(0, target, AHEAD_OF_TIME, graph, Memory(temporaries=0), hlo, 0.0)
    lowered = Lowered(0, "", "", Compile(0, target, ""), equations=tuple(equations))
    return Figures(parse(target), compiled, lowered)
