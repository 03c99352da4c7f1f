"""What differs on Windows, where it is simulated: see `on_windows.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight_repro import running

SIMULATION = Path(__file__).with_name("on_windows.py")
PROGRAM = '''\
import jax.numpy as jnp

def f(x):
    """
    Example inputs:
        x: f32[8, 4]
    """
    return jnp.tanh(x)
'''


def on_windows(*command: str, folder: Path) -> str:
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TMPDIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, str(SIMULATION), *command],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_modules_are_imported_without_what_windows_lacks(tmp_path: Path) -> None:
    assert int(on_windows("import", folder=tmp_path)) > 700


@pytest.mark.slow
def test_kernels_are_shown_without_process_groups_and_signals(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM, encoding="utf-8")
    command = ("kernels", "model.py:f", "--target", "cpu", "--python", sys.executable)
    assert "f: 1 kernel" in on_windows(*command, folder=tmp_path)


def test_programs_that_fail_are_not_watched_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", ""]
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(OSError, match="needs Linux or macOS"):
        running.run_command(command, timeout=5)
