"""What the README and the pages show is what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN_WITH = "0.10."
"""Jaxprs are printed somewhat differently by other versions of JAX."""
CONSOLE = re.compile(
    r"^```console\n\$ (jaxsight (?:show|check) examples[^\n]*)\n(?!\$)(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PICTURES = [
    pytest.param(command, output, id=f"{page.name}: {command}")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for command, output in CONSOLE.findall(page.read_text(encoding="utf-8"))
]


def test_there_are_pictures() -> None:
    assert PICTURES


@pytest.mark.skipif(
    not version("jax").startswith(SHOWN_WITH), reason=f"the pictures are of JAX {SHOWN_WITH}x"
)
@pytest.mark.parametrize(("command", "output"), PICTURES)
def test_a_command_prints_what_is_shown_below_it(command: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--python", sys.executable],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.stdout == output
