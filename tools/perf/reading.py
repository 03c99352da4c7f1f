"""How long it takes to read optimized HLO into kernels, by its number of lines.

Each size is measured in a process of its own (`python -m tools.perf.reading`), in processor time.
The texts are one training step of a transformer as XLA printed it for an H100, CPU and TPU, with
its computations and its entry's instructions repeated under other names. The baseline is the time
for the smallest text, grown with the number of lines: a ratio of 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.compiler import material
from tools.perf.editor import ENVIRONMENT
from tools.perf.measures import Figure, Goal

ROOT = Path(__file__).parents[2]
TARGETS = {"H100": "gpu_big", "CPU": "cpu_big", "TPU": "tpu_big"}
SIZES = (10_000, 100_000, 1_000_000)
FEW = {100_000: 5, 1_000_000: 1}
"""Runs of the large ones."""

_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)")
_KIBIBYTES = 1024 if sys.platform == "darwin" else 1
"""What `ru_maxrss` counts in, in KiB or, on macOS, bytes."""


def by_size(_: Path, runs: int) -> list[Figure]:
    """Seconds by lines; the goal is 2 s for 100 000 instructions."""
    figures = []
    for target in TARGETS:
        small: dict[str, Any] = {}
        for size in SIZES if target == "H100" else SIZES[:2]:
            found = _measured(target, size, min(runs, FEW.get(size, runs)))
            small = small or found
            grown = [
                each * found["instructions"] / small["instructions"] for each in small["seconds"]
            ]
            name = (
                f"HLO for {target} → kernels: {found['instructions']:,} instructions".replace(
                    ",", " "
                )
                + f", {found['megabytes']:.0f} MB"
            )
            goals = [Goal(slack=2.0)] if size == 100_000 else []
            figures.append(Figure(name, "s", found["seconds"], grown, "if it grew linearly", goals))
            figures.append(Figure(f"peak memory of {name}", "MiB", [found["peak"]]))
    return figures


def _measured(target: str, size: int, runs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tools.perf.reading", target, str(size), str(runs)]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def repeated(text: str, lines: int) -> str:
    """A module of at least so many lines: all computations, and what the entry does, again under
    other names.
    """
    before, _, entry = text.partition("\nENTRY ")
    head, _, body = entry.partition("\n")
    body, _, after = body.rpartition("\n}")
    # What is before the first computation are the module's head and its tables of names.
    start = re.search(r"^%", before, re.MULTILINE)
    assert start is not None, "there is no computation before the entry"
    tables, computations = before[: start.start()], before[start.start() :]
    copies = max(1, -(-lines // text.count("\n")))
    bodies = [body.replace("  ROOT ", "  ") for _ in range(copies - 1)] + [body]
    return (
        tables
        + "\n".join(_renamed(computations, copy) for copy in range(copies))
        + f"\nENTRY {head}\n"
        + "\n".join(_renamed(each, copy) for copy, each in enumerate(bodies))
        + f"\n}}{after}"
    )


def _renamed(text: str, copy: int) -> str:
    return _NAME.sub(rf"%\1.copy{copy}", text)


def main() -> None:
    """Prints seconds for each run, and what was read, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.perf.reading", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("lines", type=int)
    parser.add_argument("runs", type=int)
    given = parser.parse_args()
    from jaxsight.compiler.hlo.read import read

    text = repeated(material.text(TARGETS[given.target], "transformer_step"), given.lines)
    seconds = []
    for _ in range(given.runs):
        begin = time.process_time()
        graph = read(text)
        seconds.append(time.process_time() - begin)
        assert graph.kernels
    print(
        json.dumps(
            {
                "seconds": seconds,
                "instructions": text.count(" = "),
                "megabytes": len(text) / 1e6,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIBIBYTES / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
