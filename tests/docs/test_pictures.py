"""What the README and the pages show is what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN_WITH = {"sourcerize.md": "0.12."}
"""The version of JAX that a page was made with: others print jaxprs somewhat differently, and have
other functions.
"""
USUALLY = "0.10."
CONSOLE = re.compile(
    r"^(?P<indent> *)```console\n"
    r"(?P=indent)\$ (?P<command>jaxsight (?:show|check|sourcerize) examples[^\n]*)\n"
    r"(?! *\$)(?P<output>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
PICTURES = [
    pytest.param(page, picture["command"], id=f"{page.name}: {picture['command']}")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for picture in CONSOLE.finditer(page.read_text(encoding="utf-8"))
]


def test_there_are_pictures() -> None:
    assert PICTURES


@pytest.mark.parametrize(("page", "command"), PICTURES)
def test_a_command_prints_what_is_shown_below_it(
    page: Path, command: str, update_fixtures: bool
) -> None:
    made_with = SHOWN_WITH.get(page.name, USUALLY)
    if not version("jax").startswith(made_with):
        pytest.skip(f"the pictures of this page are of JAX {made_with}x")
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--python", sys.executable],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    picture = next(found for found in CONSOLE.finditer(text) if found["command"] == command)
    if update_fixtures:
        shown = textwrap.indent(done.stdout, picture["indent"])
        text = text[: picture.start("output")] + shown + text[picture.end("output") :]
        page.write_text(text, encoding="utf-8")
    else:
        assert done.stdout == textwrap.dedent(picture["output"])
