"""The memory of the processes, and how soon the spare takes over from a tracer that was killed."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from tools.perf.editor import PATIENCE, BenchError, Editor
from tools.perf.hovering import Editing
from tools.perf.measures import Figure, Goal
from tools.perf.plain_jax import WarmJax
from tools.perf.programs import SMALL

_MIB = 1024 * 1024

_TRACERS = 2
"""One at work and its spare."""

_TRACER = "boot.py tracer"
"""What the command of a tracer ends with."""

_IDLE = 60.0
"""Seconds in which an idle window is watched."""

_SETTLED = 1.0
"""Seconds between two looks at the tracers: one that used no processor time in between has done all
that a start takes.
"""


def memory(root: Path, runs: int) -> list[Figure]:
    """Resident memory of the server and of its tracer after some hovers, against a process that
    traced the same.
    """
    server: list[float] = []
    tracer: list[float] = []
    plain: list[float] = []
    for _ in range(max(runs // 10, 1)):
        with Editor(root) as editor, WarmJax(SMALL) as jax:
            editor.initialize()
            editor.open(SMALL.file, SMALL.text)
            editing = Editing(editor, SMALL.file, SMALL)
            for _ in range(10):
                editing.edit_and_hover()
                jax.trace(SMALL.definition)
            server.append(_resident(psutil.Process(editor.process.pid)))
            tracer.append(_resident(tracers(editor)[0]))
            plain.append(_resident(psutil.Process(jax.process.pid)))
    return [
        Figure("memory of the server", "MiB", server, goals=[Goal(60)]),
        Figure("memory of the tracer", "MiB", tracer, plain, "plain JAX", [Goal(factor=1.2)]),
    ]


def window(root: Path, runs: int) -> list[Figure]:
    """What one open window holds while nobody types: processes, memory (shared pages once),
    processor time.
    """
    with Editor(root) as editor:
        editor.initialize()
        editor.open(SMALL.file, SMALL.text)
        editor.hover(SMALL.file, SMALL.heading[4:])
        two_idle(editor)
        server = psutil.Process(editor.process.pid)
        every = [server, *server.children(recursive=True)]
        memory = sum(process.memory_full_info().pss for process in every) / _MIB
        before = _used(every)
        time.sleep(_IDLE)
        busy = (_used(every) - before) / _IDLE
    return [
        Figure("processes of an open window", "", [len(every)]),
        Figure("memory of an open window", "MiB", [memory]),
        Figure("processor time of an idle window", "ms/s", [busy * 1000]),
    ]


def _used(processes: list[psutil.Process]) -> float:
    """Seconds of processor time."""
    return float(sum(sum(process.cpu_times()[:2]) for process in processes))


def _resident(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / _MIB


def tracers(editor: Editor) -> list[psutil.Process]:
    """The processes that a server keeps for tracing, the oldest, which is at work, first."""
    every = psutil.Process(editor.process.pid).children(recursive=True)
    found = [process for process in every if _TRACER in " ".join(process.cmdline())]
    inner = [process for process in found if not set(process.children()) & set(found)]
    return sorted(inner, key=lambda process: process.create_time())


def replacements(root: Path, runs: int) -> list[Figure]:
    """From the death of the tracer at work to the answer to a hover that needs a new trace."""
    samples: list[float] = []
    with Editor(root) as editor:
        editor.initialize()
        editor.open(SMALL.file, SMALL.text)
        editor.hover(SMALL.file, SMALL.heading[4:])
        editing = Editing(editor, SMALL.file, SMALL)
        for _ in range(max(runs // 4, 2)):
            at_work, _ = two_idle(editor)
            at_work.kill()
            samples.append(editing.edit_and_hover())
    return [Figure("kill -9 of the tracer → hover", "ms", samples, goals=[Goal(500)])]


def two_idle(editor: Editor) -> list[psutil.Process]:
    """The two tracers, when both are warm."""
    end = time.monotonic() + PATIENCE
    used: list[float] = []
    while time.monotonic() < end:
        found = tracers(editor)
        before, used = used, [sum(process.cpu_times()[:2]) for process in found]
        if len(found) == _TRACERS and used == before:
            return found
        time.sleep(_SETTLED)
    raise BenchError("no spare tracer starts")
