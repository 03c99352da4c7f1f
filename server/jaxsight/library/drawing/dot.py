"""A kernel graph in Graphviz DOT format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxsight.text import units
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT, PARAMETER, Edge, End, Graph, Kernel

_MOST = 8
"""Maximum number of operations in a kernel's box."""
_LONGEST = 44


def dot(graph: Graph, source: Callable[[str], str]) -> str:
    """Return the graph as DOT.

    Args:
        source: returns the source text of an equation, given by its path.
    """
    return "\n".join(_lines(graph, source)) + "\n"


def _lines(graph: Graph, source: Callable[[str], str]) -> Iterator[str]:
    yield f"digraph {_quoted(graph.module or 'kernels')} {{"
    yield '  graph [rankdir=TB, fontname="Helvetica", fontsize=10, bgcolor="white",'
    yield "    nodesep=0.3, ranksep=0.4];"
    yield '  node [fontname="Helvetica", fontsize=10, shape=box, style="filled,rounded",'
    yield '    color="#9aa0a6"];'
    yield '  edge [fontname="Helvetica", fontsize=9, color="#5f6368", arrowsize=0.7];'
    for index, value in enumerate(graph.parameters):
        yield f'  p{index} [label={_quoted(value.text)}, fillcolor="#e8f0fe"];'
    for index, value in enumerate(graph.outputs):
        yield f'  o{index} [label={_quoted(value.text)}, fillcolor="#e6f4ea"];'
    yield from _inside(graph, source, -1, "  ")
    for edge in graph.edges:
        yield f"  {_node(edge.source)} -> {_node(edge.target)} [label={_quoted(_flow(edge))}];"
    yield "}"


def _inside(graph: Graph, source: Callable[[str], str], loop: int, indent: str) -> Iterator[str]:
    """Yield the kernels of a loop (-1: outside of all loops), and the inner loops as boxes."""
    for index, kernel in enumerate(graph.kernels):
        if (kernel.loops[-1] if kernel.loops else -1) == loop:
            label = _quoted(_label(index, kernel, source))
            yield f'{indent}k{index} [label={label}, fillcolor="#dadce0"];'
    for index, inner in enumerate(graph.loops):
        if inner.parent != loop:
            continue
        trips = "?" if inner.trips is None else str(inner.trips)
        yield f"{indent}subgraph cluster_{index} {{"
        label = _quoted(f"{inner.name} × {trips}")
        yield f'{indent}  label={label}; style=rounded; color="#9aa0a6"; bgcolor="white";'
        yield from _inside(graph, source, index, indent + "  ")
        yield f"{indent}}}"


def _label(index: int, kernel: Kernel, source: Callable[[str], str]) -> str:
    lines = [f"{index + 1}: {kernel.what}"]
    sources = list(dict.fromkeys(_short(source(path)) for path in kernel.equations))
    lines += sources[:_MOST]
    if len(sources) > _MOST:
        lines.append(f"… {len(sources) - _MOST} more")
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _flow(edge: Edge) -> str:
    return f"{edge.value.text}\n{units.size(edge.value.bytes)}"


def _node(end: End) -> str:
    return {PARAMETER: "p", KERNEL: "k", OUTPUT: "o"}[end.what] + str(end.index)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
