"""Which tests the gate runs for a change."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import cache

from tests.touched import by
from tools.faults.recording import ROOT


def in_gate(tests: Iterable[str], changed: str) -> set[str]:
    """Return those of the tests that the gate selects when one file has changed.

    Args:
        tests: node ids.
        changed: a path below the root of the repository.
    """
    folders = {folder.name for folder in (ROOT / "tests").iterdir() if folder.is_dir()}
    touched, are_slow = by([changed], folders), _slow()
    return {test for test in tests if touched.holds(test.partition("::")[0], test in are_slow)}


@cache
def _slow() -> frozenset[str]:
    """Return the tests that are marked as slow: pytest collects all, which takes a minute."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "slow",
         "-p", "no:cacheprovider", "tests"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if collected.returncode not in (0, 5):
        raise SystemExit(f"pytest collects no tests:\n{collected.stdout[-2000:]}{collected.stderr}")
    return frozenset(line for line in collected.stdout.splitlines() if "::" in line)
