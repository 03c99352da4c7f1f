"""Each command as a process of its own, which must do what it does in the process of the tests.

All other tests of commands run them in process (`tests/terminal.py`), but for those about signals,
pipes, the resident server and the environment.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.cli.test_commands import COMMANDS
from tests.profiles.made import PROGRAMS, gpu_plane, host_plane, write
from tests.terminal import jaxsight, process

MODEL = '''\
import jax.numpy as jnp


def double(x):
    """Twice.

    Example inputs:
        x: f32[B, 64]
        where B=4
    """
    print("tracing")
    return jnp.sin(x) * 2


def fails(x):
    """
    Example inputs:
        x: f32[2]
    """
    return x @ jnp.ones(3)
'''
DOUBLE = "model.py:double"
PYTHON = ("--python", sys.executable)
ARGUMENTS = {
    "show": (DOUBLE,),
    "ask": (DOUBLE, "--json"),
    "sourcerize": (DOUBLE, "--sources"),
    "kernels": (DOUBLE, "--svg"),
    "sweep": (DOUBLE, "B=1,2", "--csv"),
    "measure": (DOUBLE, "-t", "cuda:h100"),
    "record": (*PYTHON, "--", "python", "-c", "import model; print('ran'); raise SystemExit(4)"),
    "profile": ("logs",),
    "report": (DOUBLE, "-o", "report.html"),
    "check": ("model.py", "--no-cache"),
    "lock": PYTHON,
    "diff": ("HEAD",),
    "explain": ("JX207",),
    "trust": ("--list",),
    "server": ("--help",),
    "mcp": ("--help",),
    "targets": ("--json",),
    "repro": ("model.py:fails", "-o", "repro.py", *PYTHON),
    "dataset": ("stats", "missing"),
}
"""A command line of each; those of `measure`, `diff` and `dataset` fail, as
these take long, or print other figures each time."""
TIMES = re.compile(r"\d+(\.\d+)? (µs|ms|s)\b")


def test_no_command_is_left_out() -> None:
    assert {*ARGUMENTS} == {name for names in COMMANDS.values() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_process_does_what_is_done_in_process(tmp_path: Path, command: str) -> None:
    def run(terminal: Callable[..., CompletedProcess[str]], **options: Any) -> tuple[object, ...]:
        folder = tmp_path / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        settings = f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "cpu"\n'
        (folder / "pyproject.toml").write_text(settings)
        (folder / "model.py").write_text(MODEL)
        (folder / "empty.py").touch()
        profile = folder / "logs" / "plugins" / "profile" / "2026_11_27_10_00_00"
        write(profile / "host.xplane.pb", PROGRAMS, host_plane(3), gpu_plane(0, 3, 1.0))
        done = terminal(command, *ARGUMENTS[command], cwd=folder, **options)
        printed = (TIMES.sub("", text) for text in (done.stdout, done.stderr))
        files = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        return (
            done.returncode,
            *printed,
            [each for each in files if "__pycache__" not in each.parts],
        )

    assert run(process) == run(jaxsight, fresh=True)
