"""The page on the sourcerizer: what it shows is what the tool writes."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "source" / "sourcerize.md").read_text(encoding="utf-8")
SHOWN = {
    found["command"]: textwrap.dedent(found["text"])
    for found in re.finditer(
        r"^ *```console\n *\$ (?P<command>jaxsight sourcerize examples/\S+ --style pretty)\n"
        r"(?P<text>.*?)^ *```$",
        TEXT,
        re.MULTILINE | re.DOTALL,
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("command", SHOWN)
def test_text_on_the_page_is_what_is_written(command: str) -> None:
    ran = [sys.executable, "-m", *command.split()]
    done = subprocess.run(ran, cwd=ROOT, capture_output=True, text=True, check=True)
    shown = SHOWN[command]
    if f"for JAX {jax.__version__}." in shown:
        assert shown == done.stdout
    else:  # on another JAX the calls that a checkpoint leaves are defined in two lines more
        lines = shown.splitlines()
        assert 0 <= len(done.stdout.splitlines()) - len(lines) <= len(lines) // 10
