"""Real bugs in training steps: how small they become, and whether they are explained rightly."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import jaxlib

from jaxsight.repro.explaining.run import Choices, explain
from jaxsight.repro.explanation import FLAGS, HLO_PASSES, JIT, VERSIONS, Explanation, Verdict
from tests.corpora.repro.museum import MUSEUM, Bug, equations
from tests.repro.measuring.reductions import reduction

WITHIN = 1.5


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="museum", description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--environments", type=Path, help="bisect versions, installed here")
    parser.add_argument("--limit", type=float, default=600.0)
    options = parser.parse_args(arguments)
    bugs = [bug for bug in MUSEUM if jaxlib.__version__ in bug.jaxlib and options.only in bug.name]
    print(f"jaxlib {jaxlib.__version__}: {len(bugs)} bugs of {len(MUSEUM)}")
    print("| bug | check | before | by hand | reduced | candidates | seconds | explained |")
    print("| - | - | -: | -: | -: | -: | -: | - |")
    failed = 0
    for bug in bugs:
        failed += not _row(bug, options.limit, options.environments)
    return 1 if failed else 0


def _row(bug: Bug, limit: float, environments: Path | None) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "reduced.py")
        result = reduction(bug.in_training, bug.check, out, limit=limit)
        reduced = result.left >= 0
        explained = _explained(bug, out if reduced else bug.by_hand, environments)
    left = str(result.left) if reduced else result.problem
    print(
        f"| {bug.name} | `{bug.check}` | {equations(bug.in_training)} | {bug.equations} | {left} "
        f"| {result.tried} | {result.seconds:.0f} | {explained} |",
        flush=True,
    )
    return reduced and result.left <= WITHIN * bug.equations and "not" not in explained


def _explained(bug: Bug, file: Path, environments: Path | None) -> str:
    tables = (JIT, FLAGS, HLO_PASSES, *((VERSIONS,) if environments else ()))
    choices = Choices(tables, environments=environments)
    explanation = explain(file, sys.executable, choices, lambda _: None)
    words = [
        f"{'' if right else 'not '}{name}" for name, right in _verdicts(bug, explanation).items()
    ]
    versions = explanation.table(VERSIONS)
    return ", ".join([*words, *([versions.conclusion] if versions else [])])


def _verdicts(bug: Bug, explanation: Explanation) -> dict[str, bool]:
    rows = {
        name: {row.subject: row.verdict for row in table.rows}
        for name in (JIT, FLAGS, HLO_PASSES)
        if (table := explanation.table(name)) is not None
    }
    healing = {flag for flag, verdict in rows.get(FLAGS, {}).items() if verdict == Verdict.PASSES}
    passing = {
        name for name, verdict in rows.get(HLO_PASSES, {}).items() if verdict == Verdict.PASSES
    }
    return {
        "eager": rows.get(JIT, {}).get("without `jax.jit`") == bug.eager,
        "flag": healing >= set(bug.flags) if bug.flags else not healing,
        "pass": f"without {bug.hlo_pass}" in passing if bug.hlo_pass else not passing,
    }
