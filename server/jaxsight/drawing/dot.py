"""Kernel graphs in Graphviz DOT format, for those who draw them with other programs."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.drawing.kernel_picture import Source, box_lines
from jaxsight.text import units
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT, PARAMETER, End, Graph


def dot(graph: Graph, source: Source) -> str:
    """Return the graph as DOT.

    Args:
        source: returns the source text of an equation, given by its path.
    """
    lines = [
        f"digraph {_quoted(graph.module or 'kernels')} {{",
        '  graph [rankdir=TB, fontname="Helvetica", fontsize=10, bgcolor="white",',
        "    nodesep=0.3, ranksep=0.4];",
        '  node [fontname="Helvetica", fontsize=10, shape=box, style="filled,rounded",',
        '    color="#9aa0a6"];',
        '  edge [fontname="Helvetica", fontsize=9, color="#5f6368", arrowsize=0.7];',
    ]
    for name, values, color in (("p", graph.parameters, "e8f0fe"), ("o", graph.outputs, "e6f4ea")):
        for index, value in enumerate(values):
            lines.append(f'  {name}{index} [label={_quoted(value.text)}, fillcolor="#{color}"];')
    lines += _inside(graph, source, -1, "  ")
    for edge in graph.edges:
        label = _quoted(f"{edge.value.text}\n{units.size(edge.value.bytes)}")
        lines.append(f"  {_node(edge.source)} -> {_node(edge.target)} [label={label}];")
    return "\n".join([*lines, "}", ""])


def _inside(graph: Graph, source: Source, loop: int, indent: str) -> Iterator[str]:
    """Yield the kernels of a loop (-1: outside of all loops), and the inner loops as boxes."""
    for index, kernel in enumerate(graph.kernels):
        if (kernel.loops[-1] if kernel.loops else -1) == loop:
            label = _quoted("\n".join(box_lines(index, kernel, source)))
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


def _node(end: End) -> str:
    return {PARAMETER: "p", KERNEL: "k", OUTPUT: "o"}[end.what] + str(end.index)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
