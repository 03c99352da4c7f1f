"""Graphviz draws; its command is on the machines of those who want pictures."""

from __future__ import annotations

import shutil
import subprocess


class NoGraphviz(Exception):
    """There is no picture; the text says why, and what helps."""


def drawn_by_graphviz(graph: str) -> str:
    """A graph in Graphviz's language as SVG.

    Raises:
        NoGraphviz: the command `dot` is not installed, or fails.
    """
    command = shutil.which("dot")
    if command is None:
        raise NoGraphviz(
            "Graphviz is not installed: its command `dot` draws the picture. Without it, take "
            "the graph itself (--dot)."
        )
    done = subprocess.run(
        [command, "-Tsvg"], input=graph, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NoGraphviz(f"Graphviz does not draw it: {done.stderr.strip()}")
    return done.stdout[max(done.stdout.find("<svg"), 0) :]
