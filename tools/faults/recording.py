"""Runs parts of all tests while the Pythons of their environment record each test's lines."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tools.faults import lines

ROOT = Path(__file__).parents[2]
IMPORT = "tools_faults_lines.pth"
"""Imports the recorder in every Python of the environment, also in isolated ones (`-I`), which
ignore PYTHONPATH."""


def record(folder: Path, parts: Sequence[str]) -> int:
    """Run parts in the environment of this Python; record lines into a folder; return the status."""
    if sys.version_info < (3, 12):
        raise SystemExit("lines are recorded by Python 3.12 or newer")
    folder.mkdir(parents=True, exist_ok=True)
    site = Path(sysconfig.get_path("purelib"), IMPORT)
    site.write_text(
        f"import os, sys; os.environ.get({lines.FOLDER!r}) and (sys.path.append({str(ROOT)!r}), "
        f"__import__({lines.__name__!r}), sys.path.pop())\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "tools.suite", "all", *parts]
    recorded = str(folder.absolute())
    # Confined processes write there, too (`jaxsight/files/ownership.py`).
    environment = {**os.environ, lines.FOLDER: recorded, "JAXSIGHT_WRITABLE": recorded}
    try:
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    finally:
        site.unlink(missing_ok=True)
