"""Real bugs in training steps: how small they become."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import jaxlib

from tests.corpora.jaxsight_repro.museum import MUSEUM, Bug, equations
from tests.jaxsight_repro.measuring.reductions import reduction

WITHIN = 1.5


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="museum", description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=600.0)
    options = parser.parse_args(arguments)
    bugs = [bug for bug in MUSEUM if jaxlib.__version__ in bug.jaxlib and options.only in bug.name]
    print(f"jaxlib {jaxlib.__version__}: {len(bugs)} bugs of {len(MUSEUM)}")
    print("| bug | check | before | by hand | reduced | candidates | seconds |")
    print("| - | - | -: | -: | -: | -: | -: |")
    failed = 0
    for bug in bugs:
        failed += not _row(bug, options.limit)
    return 1 if failed else 0


def _row(bug: Bug, limit: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "reduced.py")
        result = reduction(bug.in_training, bug.check, out, limit=limit)
        reduced = result.left >= 0
    left = str(result.left) if reduced else result.problem
    print(
        f"| {bug.name} | `{bug.check}` | {equations(bug.in_training)} | {bug.equations} | {left} "
        f"| {result.tried} | {result.seconds:.0f} |",
        flush=True,
    )
    return reduced and result.left <= WITHIN * bug.equations
