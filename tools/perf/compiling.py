"""Kernels after an edit, from the disk, and after an edit that only moves lines; the memory of a
compiler.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter as now

import psutil

from jaxsight.compiler.serve import IDLE
from jaxsight.features.named_function import compiled_function
from jaxsight.projects.projects import Projects
from jaxsight.queries.programs.disk_cache import DiskCache, digest
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.environments import CompilerEnvironment
from tools.perf.editor import BenchError, milliseconds
from tools.perf.measures import Figure, Goal
from tools.perf.plain_jax import WarmJax
from tools.perf.programs import ADAM, FACTOR, MLP, SMALL, TRANSFORMER, Program, edited

_MIB = 1024 * 1024


class _Kernels:
    """A session with one program, asked for its kernels."""

    def __init__(self, root: Path, program: Program, target: str = "cpu") -> None:
        self.session = Session(Projects(Trust(Policy.ALWAYS)))
        hints = {"kernels": False, "barriers": False, "collectives": False}
        settings = {"python": sys.executable, "target": target, "inlayHints": hints}
        self.session.configure([str(root)], settings)
        self._target = target
        self._path = str(root / program.file)
        self._program = program
        self.session.open(self._path, program.text)

    async def after(self, text: str, *, complete: bool = False) -> tuple[float, Compiled]:
        """Milliseconds from the edit that makes this text to the kernels, and what they are.

        With `complete`, also to their memory.
        """
        begin = now()
        self.session.change(self._path, text)
        _, result = await compiled_function(
            self.session.engine, self._path, self._program.function, self._target, complete=complete
        )
        if isinstance(result, Refused):
            raise BenchError(result.trouble.message)
        return milliseconds(begin), result.compiled

    async def findings(self) -> float:
        """Milliseconds that the findings of the text take, once its kernels are known."""
        begin = now()
        await self.session.report(self._path, kernels=True)
        return milliseconds(begin)


def _with(program: Program, number: int) -> str:
    return program.text.replace(FACTOR, edited(number))


def _run(
    root: Path,
    program: Program,
    work: Callable[[_Kernels], Awaitable[list[Figure]]],
    target: str = "cpu",
) -> list[Figure]:
    # Nothing that was compiled for another figure, or in another run.
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=root)

    async def main() -> list[Figure]:
        kernels = _Kernels(root, program, target)
        try:
            return await work(kernels)
        finally:
            await kernels.session.aclose()

    return asyncio.run(main())


async def _edited(
    kernels: _Kernels, program: Program, runs: int, ahead: CompilerEnvironment | None = None
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds from edits to kernels, to memory, and of plain JAX; in turn, each a new text."""
    early: list[float] = []
    complete: list[float] = []
    plain: list[float] = []
    with WarmJax(program, ahead) as jax:
        for number in range(runs + 2):
            spent, _ = await kernels.after(_with(program, 2 * number))
            whole, _ = await kernels.after(_with(program, 2 * number + 1), complete=True)
            definition = program.definition.replace(FACTOR, edited(2 * number))
            baseline = await asyncio.to_thread(jax.compile, definition)
            if number >= 2:  # the first ones start processes
                early.append(spent)
                complete.append(whole)
                plain.append(baseline)
    return early, complete, plain


def after_edits(root: Path, runs: int) -> list[Figure]:
    """From an edit to the kernels of what never was, and to their memory, against
    `lower().compile()` in a warm process.
    """
    figures: list[Figure] = []
    for program, name, goal in (
        (SMALL, "a small function", 0.3),
        (ADAM, "optax adam update", 0.35),
        (TRANSFORMER, "gradient of 12 layers", 0.5),
    ):

        async def work(
            kernels: _Kernels, program: Program = program, name: str = name, goal: float = goal
        ) -> list[Figure]:
            early, complete, plain = await _edited(kernels, program, runs)
            whole, goals = "lower().compile()", [Goal(20, 1.1)]
            figures = [
                Figure(f"edit → kernels: {name}", "ms", early, plain, whole, [Goal(factor=goal)]),
                Figure(f"edit → memory: {name}", "ms", complete, plain, whole, goals),
            ]
            if program is TRANSFORMER:
                await asyncio.sleep(IDLE + 1)
                idle = [_compiler()]
                figures.append(Figure("memory of an idle compiler", "MiB", idle, goals=[Goal(220)]))
            return figures

        figures += _run(root, program, work)
    return figures


def ahead_of_time(root: Path, runs: int) -> list[Figure]:
    """The same for an H100 that is not here, against its own `lower().compile()`."""
    target, name = "cuda:h100", "a small function"
    environment = environments.suiting("cuda", version("jax"))
    if environment is None:
        raise BenchError("run `jaxsight targets install cuda` first")

    async def work(kernels: _Kernels) -> list[Figure]:
        early, complete, plain = await _edited(kernels, SMALL, runs, environment)
        whole = "lower().compile()"
        return [
            Figure(f"edit → kernels, H100: {name}", "ms", early, plain, whole, [Goal(factor=0.8)]),
            Figure(f"edit → complete, H100: {name}", "ms", complete, plain, whole),
        ]

    return _run(root, SMALL, work, target)


def of_several_devices(root: Path, runs: int) -> list[Figure]:
    """From an edit to the collectives of eight H100s that are not here, against
    `lower().compile()`; and how often something was compiled for edits elsewhere in the file.
    """
    target, devices = "cuda:h100x8", 8
    environment = environments.suiting("cuda", version("jax"))
    if environment is None:
        raise BenchError("run `jaxsight targets install cuda` first")

    async def work(kernels: _Kernels) -> list[Figure]:
        ours: list[float] = []
        plain: list[float] = []
        with WarmJax(MLP, environment, devices) as jax:
            for number in range(runs + 2):
                spent, compiled = await kernels.after(_with(MLP, number))
                kinds = {kernel.kind for kernel in compiled.graph.kernels}
                if compiled.devices != devices or "collective" not in kinds:
                    raise BenchError("the program has no collectives")
                definition = MLP.definition.replace(FACTOR, edited(number))
                baseline = await asyncio.to_thread(jax.compile, definition)
                if number >= 2:
                    ours.append(spent)
                    plain.append(baseline)
        text = _with(MLP, runs + 1)
        before = kernels.session.engine.programs.compiles
        for number in range(runs):
            await kernels.after(f"{text}\n\nELSEWHERE = {number}\n")
        compiles = [float(kernels.session.engine.programs.compiles - before)]
        goals = [Goal(3000), Goal(factor=0.8)]
        return [
            Figure(
                "edit → collectives, 8 × H100: gradient of an MLP",
                "ms",
                ours,
                plain,
                "lower().compile()",
                goals,
            ),
            Figure("compiles for edits elsewhere in the file", "", compiles, goals=[Goal(0)]),
        ]

    return _run(root, MLP, work, target)


def with_findings(root: Path, runs: int) -> list[Figure]:
    """From an edit to a complete compile and findings, against the complete compile alone, which
    holds the trace.
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
                spent, _ = await kernels.after(_with(program, number), complete=True)
                more = await kernels.findings()
                if number >= 2:
                    ours.append(spent + more)
                    alone.append(spent)
            label = f"edit → compile and findings: {name}"
            return [Figure(label, "ms", ours, alone, "the compile alone", [Goal(0, 1.05)])]

        found += _run(root, program, work)
    return found


def _compiler() -> float:
    """Resident memory of the compiler below this process."""
    for each in psutil.Process().children(recursive=True):
        if "boot.py compiler" in " ".join(each.cmdline()) and not each.children():
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
            Figure("compiles for such edits", "", compiles, goals=[Goal(0)]),
        ]

    return _run(root, SMALL, work)


def cache_hits(root: Path, runs: int) -> list[Figure]:
    """Reading what was compiled from the disk."""

    async def work(kernels: _Kernels) -> list[Figure]:
        _, compiled = await kernels.after(ADAM.text)
        cache, name = DiskCache(root / "cache"), digest("bench")
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
