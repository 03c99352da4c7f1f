"""Programs observed by a tracker in another process, and the files written for them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxsight_repro.running import FinishedRun, run_file

_DRIVER = Path(__file__).with_name("call_tree_driver.py")

PRELUDE = """import collections
import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
"""


@dataclass(frozen=True)
class Observed:
    """A program's error, or its comparison with the written program."""

    name: str
    error: str | None
    message: str
    text: str
    equal: bool
    difference: str | None
    folder: Path

    def run(self) -> FinishedRun:
        """Run the written file in a process from which jaxsight cannot be imported."""
        return run_file(sys.executable, self.folder / f"{self.name}.py", timeout=100)


def observe(
    programs: Mapping[str, str], arguments: Mapping[str, str] | None = None
) -> Iterator[Observed]:
    """Run programs, one after the other in one process, and yield what was observed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = [
            {"name": key, "text": text, "arguments": (arguments or {}).get(key)}
            for key, text in programs.items()
        ]
        file = folder / "programs.json"
        file.write_text(json.dumps(listed), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, str(_DRIVER), str(file), str(folder)],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
        assert len(lines) == len(programs), ran.stderr[-3000:]
        for line in lines:
            report = json.loads(line)
            yield Observed(
                report["name"],
                report["error"],
                report["message"],
                report.get("text", ""),
                report.get("equal", False),
                report.get("difference"),
                folder,
            )
