"""`jaxsight record`: its summary, the list of what is recorded, and `--write`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.recording import recorded_file
from jaxsight.recording.recorded_file import RecordedCall
from tests import terminal

MODEL = '''\
def loss(params, x, y, scale=1.0):
    """The loss."""
    return ((x @ params["w"] - y) ** 2).mean() * scale


def documented(x):
    """
    Example inputs:
        x: f32[2]
    """
    return x


def report(value):
    print(float(value))


def changed(x, new):
    return x
'''
INPUTS = {
    "loss": "params: {'w': f32[8, 4]}\nx: f32[16, 8]\ny: f32[16, 4]\nscale: 1.0",
    "documented": "x: f32[7]",
    "report": "value: f32[]",
    "changed": "x: f32[3]",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    functions = {
        ("model.py", name): (RecordedCall(text, 1, name != "report", "2026-11-24"),)
        for name, text in INPUTS.items()
    }
    recorded_file.write(tmp_path, functions)
    return tmp_path


def jaxsight(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return terminal.jaxsight("record", *arguments, cwd=folder)


def test_what_is_recorded_is_listed(project: Path) -> None:
    ran = jaxsight(project, "--only", "model.py:d*", "--only", "report")
    assert (ran.returncode, ran.stdout) == (
        0,
        "  model.py:documented  x: f32[7]\n  model.py:report  value: f32[]\n",
    )
    ran = jaxsight(project, "--only", "nothing")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: nothing is recorded")


def test_write_adds_sections_to_traced_functions_without_example_inputs(project: Path) -> None:
    ran = jaxsight(project, "--write")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == (
        "model.py: added example inputs to 1 function\n"
        "  not added, as they have some or have changed: changed, documented\n"
        "not added, as JAX did not trace them (name them with `--only`): report\n"
    )
    section = '''\
    """The loss.

    Example inputs:
        params: {'w': f32[8, 4]}
        x: f32[16, 8]
        y: f32[16, 4]
    """
'''
    written = MODEL.replace('    """The loss."""\n', section)
    assert (project / "model.py").read_text() == written


def test_write_adds_entries_to_the_projects_settings(project: Path) -> None:
    ran = jaxsight(project, "--write", "--to", "pyproject", "--only", "report", "--only", "loss")
    assert ran.returncode == 0, ran.stderr
    entries = '''\
[tool.jaxsight.examples]
"model:loss" = """
params: {'w': f32[8, 4]}
x: f32[16, 8]
y: f32[16, 4]
"""
"model:report" = "value: f32[]"
'''
    assert (project / "pyproject.toml").read_text() == f"[project]\nname = 'p'\n\n{entries}"


def test_a_run_passes_its_exit_status_on_and_its_output_alone_is_on_stdout(project: Path) -> None:
    program = "import model, jax.numpy as jnp; model.report(jnp.ones(())); raise SystemExit(4)"
    ran = jaxsight(project, "--python", sys.executable, "--", "python", "-c", program)
    assert (ran.returncode, ran.stdout) == (4, "1.0\n")
    assert "jaxsight: recorded 1 function in .jaxsight/recorded.json\n" in ran.stderr
