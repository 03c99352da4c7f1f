"""How long an editor waits at the start: for the server's introduction, and for the first hover."""

from __future__ import annotations

import time
from pathlib import Path

from tests.perf.editor import Editor, milliseconds
from tests.perf.hovering import BARE
from tests.perf.measures import Figure, Goal
from tests.perf.plain_jax import start_and_trace
from tests.perf.programs import SMALL


def introductions(root: Path, runs: int) -> list[Figure]:
    """From the spawn of the server to its answer to `initialize`."""
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(runs):
        for samples, command in ((ours, None), (bare, BARE)):
            begin = time.perf_counter()
            with Editor(root, *([command] if command else [])) as editor:
                editor.initialize()
                samples.append(milliseconds(begin))
    return [
        Figure(
            "start → initialize answered", "ms", ours[1:], bare[1:], "bare server", [Goal(50, 1.0)]
        )
    ]


def first_hovers(root: Path, runs: int) -> list[Figure]:
    """From the spawn of the server to the first hover, against a Python that imports JAX, traces
    and prints.
    """
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(runs):
        begin = time.perf_counter()
        with Editor(root) as editor:
            editor.initialize()
            editor.open(SMALL.file, SMALL.text)
            editor.hover(SMALL.file, SMALL.heading[4:])
            ours.append(milliseconds(begin))
        begin = time.perf_counter()
        with start_and_trace(SMALL) as process:
            assert process.stdout is not None
            process.stdout.readline()
            plain.append(milliseconds(begin))
            process.stdout.read()
    return [
        Figure(
            "start → first hover",
            "ms",
            ours[1:],
            plain[1:],
            "python -c",
            [Goal(factor=1.15)],
        )
    ]
