"""Which tests the gate runs for a change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tools.faults.recording import ROOT
from tools.faults.scratch import SENTINELS
from tools.suite.digests import folders
from tools.suite.ownership import EVERYTHING, owners
from tools.suite.selection import Gate, Traits


def in_gate(tests: Iterable[str], changed: str) -> set[str]:
    """Return those of the tests that the gate runs on the newest JAX when one file has changed.

    Args:
        tests: node ids.
        changed: a path below the root of the repository.
    """
    touched = owners(changed, folders())
    held, all_tests = _collected("--gate", ""), _collected()
    gate = Gate(folders() if EVERYTHING in touched else touched)
    return {
        test
        for test in tests
        if test in all_tests
        # What the gate of an untouched tree leaves out is slow, and none of its sentinels.
        and gate.holds(Traits(test.partition("::")[0], is_slow=test not in held))
    }


@cache
def _collected(*options: str) -> frozenset[str]:
    """Return the tests that pytest collects as the gate does; that takes a minute."""
    command = [
        sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
        "-p", "tools.suite.plugin", "--environment", Path(sys.prefix).name, *options, "tests",
    ]  # fmt: skip
    collected = subprocess.run(
        command, cwd=ROOT, env=os.environ | SENTINELS, check=False, capture_output=True, text=True
    )
    if collected.returncode not in (0, 5):
        raise SystemExit(f"pytest collects no tests:\n{collected.stdout[-2000:]}{collected.stderr}")
    return frozenset(line for line in collected.stdout.splitlines() if "::" in line)
