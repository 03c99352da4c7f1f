"""How long starts take: of the server, until its introduction and the first hover, and of commands."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.perf.editor import ENVIRONMENT, SERVER, Editor, milliseconds
from tools.perf.hovering import BARE, Editing
from tools.perf.measures import Figure, Goal
from tools.perf.plain_jax import start_and_trace
from tools.perf.programs import SMALL

_EDITS = 10
"""Edits in each server that is started."""


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


UNCONFINED = [sys.executable, str(Path(__file__).with_name("unconfined_server.py")), "server"]


def confinement(root: Path, runs: int) -> list[Figure]:
    """First hovers and hovers after edits, against a server whose tracers are not confined."""
    starts: tuple[list[float], list[float]] = [], []
    edits: tuple[list[float], list[float]] = [], []
    for _ in range(runs):
        for at, command in enumerate((SERVER, UNCONFINED)):
            begin = time.perf_counter()
            with Editor(root, command) as editor:
                editor.initialize()
                editor.open(SMALL.file, SMALL.text)
                editor.hover(SMALL.file, SMALL.heading[4:])
                starts[at].append(milliseconds(begin))
                editing = Editing(editor, SMALL.file, SMALL)
                edits[at].extend(editing.edit_and_hover() for _ in range(_EDITS))
    goals, baseline = [Goal(factor=1.05)], "not confined"
    return [
        Figure(
            "start → first hover, confined", "ms", starts[0][1:], starts[1][1:], baseline, goals
        ),
        Figure("hover after an edit, confined", "ms", *map(sorted, edits), baseline, goals),
    ]


def commands(root: Path, runs: int) -> list[Figure]:
    """Processor time of whole commands, each with its children."""
    (root / SMALL.file).write_text(SMALL.text, encoding="utf-8")
    function = f"{SMALL.file}:{SMALL.function}"
    plain = [sys.executable, "-c", _PLAIN]
    rows: list[tuple[str, Sequence[str], Goal]] = [
        ("--version", ["--version"], Goal(150)),
        ("--help", ["--help"], Goal(150)),
        ("explain JX207", ["explain", "JX207"], Goal(300)),
        ("trust --list", ["trust", "--list"], Goal(300)),
        ("targets", ["targets", "--python", sys.executable], Goal(300)),
        ("show", ["show", function, "--python", sys.executable], Goal(500, 1.0)),
    ]
    figures = []
    for name, arguments, goal in rows:
        ours: list[float] = []
        baseline: list[float] = []
        for _ in range(max(runs // 3, 2)):
            ours.append(_processor_time([sys.executable, "-m", "jaxsight", *arguments], root))
            if goal.factor:
                baseline.append(_processor_time(plain, root))
        figures.append(
            Figure(f"jaxsight {name}", "ms", ours[1:], baseline[1:], "import jax", [goal])
        )
    return figures


_PLAIN = "import jax; jax.make_jaxpr(lambda x: jax.numpy.sin(x) * 2)(1.0)"


def _processor_time(command: Sequence[str], root: Path) -> float:
    """Return the milliseconds of processor time that a command and its children used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=root, env=ENVIRONMENT, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
