"""What becomes of a dump: its source, and the results beside those of XLA's own run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxsight_repro.dumps.choosing import ChosenDump
from jaxsight_repro.dumps.emit import emit
from jaxsight_repro.emit.repro_file import CannotEmit
from jaxsight_source.stablehlo.program import UnreadableProgram

DUMPS = sorted((Path(__file__).parents[2] / "corpora" / "jaxsight_repro" / "dumps").iterdir())


@dataclass(frozen=True)
class DumpOutcome:
    source: str
    values: str = "-"
    runs: bool = False


def outcome(path: Path) -> DumpOutcome:
    """Write a dump as source, run it in a fresh process, and compare its results with XLA's."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, f"{path.stem}.py")
        before = jax.config.jax_enable_x64
        try:
            emitted = emit(ChosenDump(path), out, timeout=120)
            if emitted.observed.kind != "finished":
                return DumpOutcome(emitted.observed.headline)
            return DumpOutcome("yes", _compared(path, out), runs=True)
        except (UnreadableProgram, CannotEmit) as error:
            return DumpOutcome(f"no: {error}")
        finally:
            jax.config.update("jax_enable_x64", before)


def _compared(path: Path, out: Path) -> str:
    """Return how results compare, from a process of its own: XLA may abort."""
    for form in ("as dumped", "calls"):
        command = [
            sys.executable,
            "-m",
            "tests.jaxsight_repro.dumps.comparing",
            str(path),
            str(out),
            form,
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            return done.stdout.strip() + (" (its fusions as calls)" if form == "calls" else "")
    errors = [line for line in done.stderr.splitlines() if "Error: " in line]
    reason = errors[-1].partition("Error: ")[2] if errors else f"exit status {done.returncode}"
    return f"XLA cannot run it here: {reason[:90]}"
