"""Drawings of kernel graphs: grey boxes for kernels, white ones for loops, arrows for values.

Graphs are written in Graphviz DOT format, and drawn with its command `dot`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

from jaxsight.text import units
from jaxsight.text.layout import cut
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT, PARAMETER, End, Graph, Kernel
from jaxsight.workers.own_python import program

_MOST = 8
"""Operations in a kernel's box, a choice: fused loops have tens, and a taller box pushes the next
ones out of sight."""
_LONGEST = 44
"""Characters of a line in it, a choice: two boxes beside each other fit a page."""


def dot(graph: Graph, source: Callable[[str], str]) -> str:
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
    lines = [f"{index + 1}: {kernel.title}"]
    texts = (" ".join(source(path).split()) for path in kernel.equations)
    sources = list(dict.fromkeys(cut(text, _LONGEST) for text in texts))
    lines += sources[:_MOST]
    if len(sources) > _MOST:
        lines.append(f"… {len(sources) - _MOST} more")
    return "\n".join(lines)


def _node(end: End) -> str:
    return {PARAMETER: "p", KERNEL: "k", OUTPUT: "o"}[end.what] + str(end.index)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class NoGraphviz(Exception):
    """The graph cannot be drawn; the message has the reason and a remedy."""


def drawn_by_graphviz(graph: str) -> str:
    """Return a graph in DOT format as SVG.

    Raises:
        NoGraphviz: the command `dot` is not installed, or fails.
    """
    command = program("dot")
    if command is None:
        raise NoGraphviz(
            "Graphviz is not installed: its command `dot` draws the graph; "
            "use --dot to print the graph as text"
        )
    done = subprocess.run(
        [command, "-Tsvg"], input=graph, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NoGraphviz(f"Graphviz failed to draw the graph: {done.stderr.strip()}")
    return done.stdout[max(done.stdout.find("<svg"), 0) :]
