"""`jaxsight sweep` as a person runs it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.terminal import jaxsight

SERVER = Path(__file__).parents[2] / "server"
MODEL = '''\
import jax
import jax.numpy as jnp


def gram(x):
    """
    Example inputs:
        x: f32[B, D]
        where B=4, D=64
    """
    return jnp.sin(x @ x.T)


def barred(x):
    """
    Example inputs:
        x: f32[B, 64]
        where B=4
    """
    return jnp.cos(jax.lax.optimization_barrier(jnp.sin(x))).sum(axis=1)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "cpu"\n'
    )
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def sweep(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return jaxsight("sweep", *arguments, cwd=cwd)


def test_a_table_for_each_function_and_a_picture_of_all(project: Path) -> None:
    done = sweep(
        "model.py:gram",
        "model.py:barred",
        "B=1,2,4",
        "--memory",
        "1MiB",
        "--svg",
        "b.svg",
        cwd=project,
    )
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("▣")] == [
        "▣ gram over B · cpu",
        "▣ barred over B · cpu",
    ]
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["1", "2", "4"] * 2
    assert sum(line.startswith("largest B that fits in 1 MiB: ") for line in lines) == 2
    picture = ElementTree.parse(project / "b.svg").getroot()
    names = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"gram", "barred", "B", "temporary memory over B, cpu"} <= {*names}


def test_json_of_one_function_is_an_object_and_csv_has_the_same_figures(project: Path) -> None:
    found = json.loads(sweep("model.py:gram", "B=1,2", "D=8,16", "--json", cwd=project).stdout)
    assert (found["function"], found["target"], found["largest"]) == ("gram", "cpu", [])
    assert [point["sizes"] for point in found["points"]] == [
        {"B": 1, "D": 8},
        {"B": 2, "D": 8},
        {"B": 1, "D": 16},
        {"B": 2, "D": 16},
    ]
    printed = sweep("model.py:gram", "B=1,2", "D=8,16", "--csv", cwd=project).stdout
    rows = [*csv.DictReader(io.StringIO(printed))]
    figures = ("kernel_count", "temp_bytes", "argument_bytes", "traffic_bytes")
    assert [[row[name] for name in figures] for row in rows] == [
        [str(point[name]) for name in figures] for point in found["points"]
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.py:gram",), "missing sizes: write e.g. B=1..4096 or L=128,256"),
        (("B=1..4",), "missing function: write FILE:FUNCTION, e.g. model.py:loss"),
        (("model.py:gram", "B=4..1"), "invalid sizes 'B=4..1': 4..1 has no values"),
        (("model.py:gram", "B=1,x"), "invalid sizes 'B=1,x'"),
        (("model.py:gram", "B=1", "B=2"), "B is swept twice"),
        (("model.py:gram", "B=1..16", "D=1..9"), "a sweep of 144 points is too long"),
        (("model.py:gram", "B=1", "--memory", "lots"), "invalid amount of memory 'lots'"),
        (("model.py:gram", "L=1..4"), "gram has no size L; it has B, D"),
        (("model.py:gram", "B=1", "-t", "cuda:h1000"), "unknown target"),
    ],
)
def test_a_command_that_cannot_run_says_why_in_one_line(
    project: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = sweep(*arguments, cwd=project)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"error: {message}" in done.stderr
    assert "Traceback" not in done.stderr
