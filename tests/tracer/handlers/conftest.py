from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def fresh_python() -> Callable[[str], str]:
    """Runs a program in a new process of this interpreter; answers what it printed."""

    def run(program: str) -> str:
        path = os.pathsep.join((str(ROOT / "server"), str(ROOT)))
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        )
        return done.stdout

    return run
