"""What many open documents cost the one that is looked at, how soon such a server ends, and how
much memory edits leave behind.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from tools.perf.editor import Editor, milliseconds
from tools.perf.hovering import Editing
from tools.perf.measures import Figure, Goal
from tools.perf.processes import tracers, two_idle
from tools.perf.programs import FACTOR, SMALL

CROWDS = (0, 300, 2000)
"""Documents that are opened at once, beside the one that is looked at."""

_MIB = 1024 * 1024
_EDITS = 1000
_SETTLING = 1000
"""Edits before those that count: caches fill, and imports follow."""


def documents(root: Path, runs: int) -> list[Figure]:
    """A hover of a function that was just edited, right after many documents were opened, then the
    end of the server.
    """
    figures = []
    alone: list[float] = []
    for count in CROWDS:
        hovers: list[float] = []
        ends: list[float] = []
        for _ in range(max(runs // 10, 1)):
            hover, end = _crowded(root, count)
            hovers.append(hover)
            ends.append(end)
        alone = alone or hovers
        figures += [
            Figure(
                f"hover after an edit, {count:,} documents opened at once",
                "ms",
                hovers,
                alone,
                "no other document",
                [Goal(2000)],
            ),
            Figure(f"shutdown and exit, {count:,} documents", "ms", ends, goals=[Goal(2000)]),
        ]
    return figures


def _crowded(root: Path, count: int) -> tuple[float, float]:
    """Milliseconds of a hover, and of the server's end, beside `count` other documents."""
    with Editor(root) as editor:
        editor.initialize()
        editor.open(SMALL.file, SMALL.text)
        editing = Editing(editor, SMALL.file, SMALL)
        editing.edit_and_hover()
        two_idle(editor)
        for number in range(count):
            editor.open(f"other{number}.py", SMALL.text.replace(FACTOR, f"{number}.25"))
        begin = time.perf_counter()
        editing.edit()
        editing.hover()
        hover = milliseconds(begin)
        begin = time.perf_counter()
    return hover, milliseconds(begin)


def edits(root: Path, runs: int) -> list[Figure]:
    """Memory that the server and its tracer have gained after many edits, each with a hover."""
    with Editor(root) as editor:
        editor.initialize()
        editor.open(SMALL.file, SMALL.text)
        editing = Editing(editor, SMALL.file, SMALL)
        editing.edit_and_hover()
        server, tracer = psutil.Process(editor.process.pid), tracers(editor)[0]
        sizes = []
        for count in (_SETTLING, _EDITS):
            for _ in range(count):
                editing.edit()
                editing.hover()
            sizes.append([process.memory_info().rss / _MIB for process in (server, tracer)])
    before, after = sizes
    gained = [late - early for early, late in zip(before, after, strict=True)]
    return [
        Figure(f"memory gained in {_EDITS:,} edits: {name}", "MiB", [gain], goals=[Goal(1)])
        for name, gain in zip(("server", "tracer"), gained, strict=True)
    ]
