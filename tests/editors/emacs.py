"""A real Emacs without a screen, set up as `docs/editors.md` tells people to, from that page's own
text.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.editors.neovim import REPOSITORY

_PROGRAMS = re.compile(r"^```elisp\n(?P<lisp>.*?)\n```", re.DOTALL | re.MULTILINE)
"""The setup for files of programs."""
_BLOCK = re.compile(r'=== "Emacs[^"]*"\n\n +```elisp\n(?P<lisp>.*?)\n +```', re.DOTALL)
_PANEL = re.compile(r'=== "Emacs"\n.*?```elisp\n(?P<lisp>.*?)\n +```', re.DOTALL)
_HAS_EGLOT = "(progn (require 'package) (package-initialize) (require 'eglot))"
_FOLDER = Path(__file__).parent


def missing() -> str:
    """Why these tests cannot run here; empty when they can."""
    binary = shutil.which("emacs")
    if binary is None:
        return "there is no Emacs"
    has = subprocess.run(
        [binary, "--batch", "--eval", _HAS_EGLOT], capture_output=True, check=False
    )
    return "" if has.returncode == 0 else "there is no eglot for this Emacs"


def emacs(
    script: str, folder: Path, home: Path, *, typed: str = "", **variables: str
) -> dict[str, Any]:
    """What a script finds, by the names that it gives.

    Args:
        script: the name of a file beside this one.
        folder: where Emacs is started.
        home: the person's home.
        typed: the lines with which the minibuffer's questions are answered.
        variables: of its environment.
    """
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    documented = _BLOCK.search(page)
    programs = _PROGRAMS.search(page)
    assert documented is not None, "docs/editors.md has no setup for Emacs"
    assert programs is not None, "docs/editors.md has no setup for programs in Emacs"
    panel = _PANEL.search(page)
    assert panel is not None, "docs/editors.md has no panel for Emacs"
    setup = home / "setup.el"
    blocks = [block["lisp"] for block in (documented, programs, panel)]
    setup.write_text("\n".join(blocks), encoding="utf-8")
    command = home / "jaxsight"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jaxsight "$@"\n')
    command.chmod(0o755)
    findings = home / "findings"
    loads = [
        part
        for file in (setup, _FOLDER / "driver.el", _FOLDER / script)
        for part in ("--load", file)
    ]
    done = subprocess.run(
        ["emacs", "--batch", *loads],
        cwd=folder,
        env={
            **os.environ,
            "HOME": str(home),
            "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "server"),
            "FINDINGS": str(findings),
            "PYTHON": sys.executable,
            "SCRIPTS": str(_FOLDER),
            **variables,
        },
        input=typed,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in findings.read_text(encoding="utf-8").splitlines())
