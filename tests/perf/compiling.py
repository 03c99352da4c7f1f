"""Kernels after an edit, from the disk, and after an edit that only moves lines; the memory of a
compiler.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter as now

import psutil

from jaxsight.projects.projects import Projects
from jaxsight.queries.programs.disk_cache import Cache, digest
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.compiling import Compiled
from tests.perf.editor import BenchError, milliseconds
from tests.perf.measures import Figure, Goal
from tests.perf.plain_jax import WarmJax
from tests.perf.programs import ADAM, FACTOR, SMALL, TRANSFORMER, Program, edited

_MIB = 1024 * 1024
_TARGET = "cpu"
"""The one that plain JAX compiles for too, with the same jaxlib."""


class _Kernels:
    """A session with one program, asked for its kernels."""

    def __init__(self, root: Path, program: Program) -> None:
        self.session = Session(Projects(Trust(Policy.ALWAYS)))
        self.session.configure([str(root)], {"python": sys.executable, "target": _TARGET})
        self._path = str(root / program.file)
        self._program = program
        self.session.open(self._path, program.text)

    async def after(self, text: str) -> tuple[float, Compiled]:
        """Milliseconds from the edit that makes this text to the kernels."""
        begin = now()
        self.session.change(self._path, text)
        _, result = await self.session.kernels(self._path, self._program.function, _TARGET)
        if not isinstance(result.outcome, Compiled):
            raise BenchError(result.outcome.message)
        return milliseconds(begin), result.outcome

    async def findings(self) -> float:
        """Milliseconds that the findings of the text take, once its kernels are known."""
        begin = now()
        await self.session.findings(self._path, kernels=True)
        return milliseconds(begin)


def _with(program: Program, number: int) -> str:
    return program.text.replace(FACTOR, edited(number))


def _run(
    root: Path, program: Program, work: Callable[[_Kernels], Awaitable[list[Figure]]]
) -> list[Figure]:
    # Nothing that was compiled for another figure, or in another run.
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=root)

    async def main() -> list[Figure]:
        kernels = _Kernels(root, program)
        try:
            return await work(kernels)
        finally:
            await kernels.session.aclose()

    return asyncio.run(main())


def after_edits(root: Path, runs: int) -> list[Figure]:
    """From an edit to the kernels of what never was, against `lower().compile()` in a warm
    process.
    """
    found: list[Figure] = []
    for program, name in (
        (SMALL, "a small function"),
        (ADAM, "optax adam update"),
        (TRANSFORMER, "gradient of 12 layers"),
    ):

        async def work(
            kernels: _Kernels, program: Program = program, name: str = name
        ) -> list[Figure]:
            ours: list[float] = []
            plain: list[float] = []
            with WarmJax(program) as jax:
                for number in range(runs + 2):
                    spent, _ = await kernels.after(_with(program, number))
                    definition = program.definition.replace(FACTOR, edited(number))
                    baseline = await asyncio.to_thread(jax.compile, definition)
                    if number >= 2:  # the first ones start processes
                        ours.append(spent)
                        plain.append(baseline)
            figures = [
                Figure(
                    f"edit → kernels: {name}",
                    "ms",
                    ours,
                    plain,
                    "lower().compile()",
                    [Goal(20, 1.1)],
                )
            ]
            if program is TRANSFORMER:
                figures.append(Figure("memory of a compiler", "MiB", [_compiler()]))
            return figures

        found += _run(root, program, work)
    return found


def with_findings(root: Path, runs: int) -> list[Figure]:
    """From an edit to kernels and findings, against the kernels alone, which hold the trace and the
    compile.
    """
    found: list[Figure] = []
    for program, name in (
        (SMALL, "a small function"),
        (ADAM, "optax adam update"),
        (TRANSFORMER, "gradient of 12 layers"),
    ):

        async def work(
            kernels: _Kernels, program: Program = program, name: str = name
        ) -> list[Figure]:
            ours: list[float] = []
            alone: list[float] = []
            for number in range(runs + 2):
                spent, _ = await kernels.after(_with(program, number))
                more = await kernels.findings()
                if number >= 2:
                    ours.append(spent + more)
                    alone.append(spent)
            label = f"edit → kernels and findings: {name}"
            return [Figure(label, "ms", ours, alone, "kernels alone", [Goal(0, 1.1)])]

        found += _run(root, program, work)
    return found


def _compiler() -> float:
    """Resident memory of the compiler below this process."""
    for each in psutil.Process().children(recursive=True):
        if (
            any(part.endswith("compiler/boot.py") for part in each.cmdline())
            and not each.children()
        ):
            return float(each.memory_info().rss) / _MIB
    raise BenchError("no compiler is there")


def moved_lines(root: Path, runs: int) -> list[Figure]:
    """From an edit above the function to the kernels, and how often something was compiled for all
    such edits.
    """

    async def work(kernels: _Kernels) -> list[Figure]:
        await kernels.after(SMALL.text)
        before = kernels.session.engine.programs.compiles
        spent = [
            (await kernels.after("\n" * (1 + number) + SMALL.text))[0] for number in range(runs)
        ]
        compiles = [float(kernels.session.engine.programs.compiles - before)]
        return [
            Figure("lines move → kernels", "ms", spent),
            Figure(f"compiles for {runs} such edits", "", compiles, goals=[Goal(0)]),
        ]

    return _run(root, SMALL, work)


def cache_hits(root: Path, runs: int) -> list[Figure]:
    """Reading what was compiled from the disk."""

    async def work(kernels: _Kernels) -> list[Figure]:
        _, compiled = await kernels.after(ADAM.text)
        cache, name = Cache(root / "cache"), digest("bench")
        cache.put(name, compiled)
        samples: list[float] = []
        for _ in range(runs):
            begin = now()
            found = cache.get(name)
            samples.append(milliseconds(begin))
            if found != compiled:
                raise BenchError("the cache gave something else")
        return [Figure("compile cache hit: optax adam update", "ms", samples, goals=[Goal(5)])]

    return _run(root, ADAM, work)
