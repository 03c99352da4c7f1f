"""The page on several devices, and the README: what they show is what the command prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jaxlib
import pytest

ROOT = Path(__file__).parents[2]
_SHOWN = re.compile(
    r"^```console\n\$ (?P<command>jaxsight kernels examples/meshes\.py\S+ .*)\n"
    r"(?P<text>(?:.*\n)*?)```$",
    re.MULTILINE,
)
_MEASURED = re.compile(r"trace .* · lower .* · XLA ")
"""A line of times, which differ each time."""
PAGES = ("README.md", "docs/meshes.md")


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_output_on_the_page_is_what_is_printed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = {match["command"]: match["text"] for match in _SHOWN.finditer(text)}
    assert shown
    for command, output in shown.items():
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=True,
        )
        if f"jaxlib {jaxlib.__version__}" in output:
            lines = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
            assert [line for line in lines if not _MEASURED.match(line)] == output.splitlines()
        else:  # another JAX fuses in another way
            assert " per device · " in done.stdout.splitlines()[0]
