"""Runs `jaxsight repro` here on small programs, which are processes of their own."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.terminal import SERVER, run_here

__all__ = ["SERVER"]


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str
    repro: str = ""
    path: Path = Path()

    @property
    def record(self) -> Any:
        """What `--json` printed, after the program's own output."""
        return json.loads(
            self.stdout[self.stdout.rindex("\n{\n") if "\n{\n" in self.stdout else 0 :]
        )


def jaxsight(folder: Path, *arguments: str, **variables: str) -> Finished:
    """Run a command of jaxsight's in a folder, with this Python as the user's."""
    environ = {**os.environ, "PYTHONPATH": str(SERVER), **variables}
    done = run_here(arguments, folder, environ)
    return Finished(done.returncode, done.stdout, done.stderr)


def extract(folder: Path, program: str, *options: str, **variables: str) -> Finished:
    """Run a program under capture, and return what came of it with the repro's text."""
    (folder / "program.py").write_text(program)
    out = folder / "repro.py"
    arguments = ["repro", "run", "--python", sys.executable, "-o", str(out), *options, "program.py"]
    done = jaxsight(folder, *arguments, **variables)
    text = out.read_text() if out.exists() else ""
    return Finished(done.code, done.stdout, done.stderr, text, out)


def body(repro: str) -> str:
    """Return a repro without its header and docstring."""
    return repro[repro.index('"""', repro.index('"""') + 3) + 3 :].strip()
