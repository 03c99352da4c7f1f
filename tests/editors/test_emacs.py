"""What a person sees in Emacs with eglot: another client, with its own ways."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import REPOSITORY
from tests.editors.project import MODEL, SETTINGS

pytestmark = pytest.mark.slow

BLOCK = re.compile(r'=== "Emacs[^"]*"\n\n +```elisp\n(?P<lisp>.*?)\n +```', re.DOTALL)
HAS_EGLOT = "(progn (require 'package) (package-initialize) (require 'eglot))"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Emacs shows of a project, set up as `docs/editors.md` tells people to."""
    binary = shutil.which("emacs")
    if binary is None or _fails([binary, "--batch", "--eval", HAS_EGLOT]):
        pytest.skip("there is no Emacs with eglot")
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    documented = BLOCK.search(page)
    assert documented is not None, "docs/editors.md has no setup for Emacs"
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    home = tmp_path_factory.mktemp("home")
    (home / "setup.el").write_text(documented["lisp"], encoding="utf-8")
    command = home / "jaxsight"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jaxsight "$@"\n')
    command.chmod(0o755)
    script = Path(__file__).with_name("emacs.el")
    done = subprocess.run(
        [binary, "--batch", "--load", home / "setup.el", "--load", script],
        cwd=folder,
        env={
            **os.environ,
            "HOME": str(home),
            "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "server"),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def test_hover_tells_functions_and_expressions(seen: dict[str, Any]) -> None:
    assert "q: f32[4,128,8,64]" in seen["function"]
    assert "scores: f32[4,8,128,128]" in seen["expression"]


def test_a_tracing_error_is_a_diagnostic_at_its_line(seen: dict[str, Any]) -> None:
    line = MODEL.splitlines().index("    if x.sum() > 0:") + 1
    assert any(at == line and "bool" in words for at, words in seen["diagnostics"])


def test_shapes_are_drawn_by_those_that_draw_hints(seen: dict[str, Any]) -> None:
    draws = int(seen["emacs"].partition(".")[0]) >= 29
    assert draws == (": f32[4,8,128,128]" in seen.get("hints", []))


def test_example_inputs_are_added_by_a_code_action(seen: dict[str, Any]) -> None:
    section = seen["text"].partition("def clipped")[2].partition("norm =")[0]
    assert "Example inputs:" in section
    assert "x: f32[" in section


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
