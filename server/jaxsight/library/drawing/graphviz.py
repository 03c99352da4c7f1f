"""Draw graphs with the `dot` command of an installed Graphviz."""

from __future__ import annotations

import subprocess

from jaxsight.workers.own_python import program


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
