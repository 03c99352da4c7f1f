"""How long it takes to write a function as source, by its number of equations, and what memory.

Each size is measured in a process of its own (`python -m tools.perf.writing`), in processor time:
writing waits for nothing, and the shares of other processes say nothing of it. Tracing is the
baseline, and is taken off from what `sourcerize` takes, which traces too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.perf.editor import ENVIRONMENT
from tools.perf.measures import Figure, Goal

ROOT = Path(__file__).parents[2]
SIZES = (100, 1_000, 10_000, 100_000)
GOAL_AT = 10_000
FEW = {10_000: 5, 100_000: 1}
"""Runs of the large ones."""

_KIBIBYTES = 1024 if sys.platform == "darwin" else 1
"""What `ru_maxrss` counts in, in KiB or, on macOS, bytes."""


def by_size(_: Path, runs: int) -> list[Figure]:
    """Writing over tracing, in the plain style; the text is executed, traced and compared with the
    function.
    """
    figures = []
    for program in PROGRAMS:
        for size in SIZES:
            found = _measured(program, size, min(runs, FEW.get(size, runs)), "lax")
            goals = [Goal(factor=1.0)] if size == GOAL_AT else []
            name = f"sourcerize, tracing aside: {program} of {_count(size)} equations"
            figures.append(
                Figure(name, "ms", found["written"], found["traced"], "make_jaxpr", goals)
            )
    return figures


def pretty(_: Path, runs: int) -> list[Figure]:
    """The same in the pretty style."""
    figures = []
    for program in PROGRAMS:
        found = _measured(program, GOAL_AT, min(runs, FEW[GOAL_AT]), "pretty")
        name = f"sourcerize, pretty and verified: {program} of {_count(GOAL_AT)} equations"
        figures.append(
            Figure(name, "ms", found["written"], found["traced"], "make_jaxpr", [Goal(factor=2.0)])
        )
    return figures


def memory(_: Path, runs: int) -> list[Figure]:
    """Peaks of processes that write, and that only trace."""
    size = SIZES[-1]
    figures = []
    for program in PROGRAMS:
        ours, plain = (_measured(program, size, 1, style) for style in ("lax", "none"))
        name = f"peak memory of sourcerize: {program} of {_count(size)} equations"
        figures.append(Figure(name, "MiB", [ours["peak"]], [plain["peak"]], "make_jaxpr"))
    return figures


def _count(size: int) -> str:
    return f"{size:,}".replace(",", " ")


def _measured(program: str, size: int, runs: int, style: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tools.perf.writing", program, str(size), str(runs), style]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def _chain(size: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    import jax.numpy as jnp

    def chain(x: Any) -> Any:
        for _ in range(size // 5):
            x = jnp.sin(x) * 1.5 + x
            x = jnp.exp(-x)
        return x

    return chain, (jnp.ones(8),)


def _layers(size: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    import jax
    import jax.numpy as jnp

    def layers(x: Any, w: Any) -> Any:
        for _ in range(size // 11):
            h = jax.nn.relu(x @ w)
            h = h - jnp.mean(h, axis=-1, keepdims=True)
            h = h / jnp.sqrt(jnp.var(h, axis=-1, keepdims=True) + 1e-5)
            x = x + h
        return x.sum()

    return layers, (jnp.ones((4, 8)), jnp.ones((8, 8)))


PROGRAMS = {"chain": _chain, "layers": _layers}
"""Elementwise operations one after another, and layers with a normalization that calls jitted
functions.
"""


def main() -> None:
    """Prints samples in milliseconds, and the peak of this process in MiB, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.perf.writing", description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("size", type=int)
    parser.add_argument("runs", type=int)
    parser.add_argument("style", choices=["lax", "pretty", "none"])
    given = parser.parse_args()
    import jax

    make = PROGRAMS[given.program]
    _write(make(100), "lax")  # imports, and what is proved once
    traced, written = [], []
    for _ in range(given.runs):
        # A new function each time: JAX remembers what it has traced.
        function, args = make(given.size)
        begin = time.process_time()
        jaxpr = jax.make_jaxpr(function)(*args)
        traced.append((time.process_time() - begin) * 1000)
        assert len(jaxpr.eqns) > 0.7 * given.size
        del jaxpr
        if given.style != "none":
            taken = _write(make(given.size), given.style)
            written.append(max(taken - traced[-1], 0.0))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIBIBYTES / 1024
    print(json.dumps({"traced": traced, "written": written, "peak": peak}))


def _write(called: tuple[Callable[..., Any], tuple[Any, ...]], style: Any) -> float:
    """Milliseconds for the text of a function."""
    import jaxsight

    function, args = called
    begin = time.process_time()
    jaxsight.sourcerize(function, style=style)(*args)
    return (time.process_time() - begin) * 1000


if __name__ == "__main__":
    main()
