"""What an answer leaves out, in the terminal: lines that begin with `note:`, and keys of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import terminal

SERVER = Path(__file__).parents[2] / "server"
MODEL = '''\
CFG = {"scale": 2.0}


def train():
    CFG["scale"] = 5.0


train()  # jaxsight: never


def scaled(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x * CFG["scale"]


def halved(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x * CFG["scale"] / 2


def plain(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x + 1
'''
REASON = "`train()` was not run (marked `never`) and may change `CFG`"
NOTE = f"note: model.py:8: {REASON}"
INCOMPLETE = {"complete": False, "caveats": [{"line": 8, "reason": REASON}]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(
        f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "cpu"\n'
    )
    (folder / "model.py").write_text(MODEL)
    return folder


def jaxsight(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a terminal of 60 columns."""
    return terminal.jaxsight(*arguments, cwd=cwd, COLUMNS="60")


def completeness(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("complete", "caveats")}


@pytest.mark.parametrize("what", ["hover", "jaxpr", "shapes"])
def test_show_has_a_note_for_each_caveat(project: Path, what: str) -> None:
    done = jaxsight("show", "model.py:scaled", "--what", what, cwd=project)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "train()" in line] == [NOTE]


def test_show_has_no_note_where_nothing_is_left_out(project: Path) -> None:
    done = jaxsight("show", "model.py:plain", cwd=project)
    assert "note:" not in done.stdout
    (note,) = [line for line in done.stderr.splitlines() if "note:" in line]
    assert note.startswith("note: Python: ")
    shown = json.loads(jaxsight("show", "model.py:plain", "--json", cwd=project).stdout)
    assert completeness(shown) == {"complete": True, "caveats": []}


def test_json_of_show_says_what_is_left_out(project: Path) -> None:
    shown = json.loads(jaxsight("show", "model.py:scaled", "--json", cwd=project).stdout)
    assert completeness(shown) == INCOMPLETE
    assert f"line 8: {REASON}" in shown["markdown"]


@pytest.mark.slow
def test_kernels_say_what_is_left_out(project: Path) -> None:
    done = jaxsight("kernels", "model.py:scaled", cwd=project)
    assert NOTE in done.stdout.splitlines()
    done = jaxsight("kernels", "model.py:scaled", "--json", cwd=project)
    assert completeness(json.loads(done.stdout)) == INCOMPLETE
    done = jaxsight("kernels", "model.py:scaled", "--hlo", cwd=project)
    assert "note:" not in done.stdout, "it is HLO"
    assert NOTE in done.stderr.splitlines()


@pytest.mark.slow
def test_source_begins_with_a_comment_about_what_is_left_out(project: Path) -> None:
    done = jaxsight("sourcerize", "model.py:scaled", cwd=project)
    assert done.stdout.splitlines()[0] == f"# note: line 8: {REASON}"
    compile(done.stdout, "scaled.py", "exec")
    assert NOTE in done.stderr.splitlines()
    done = jaxsight("sourcerize", "model.py:scaled", "--json", cwd=project)
    assert completeness(json.loads(done.stdout)) == INCOMPLETE


@pytest.mark.slow
def test_check_has_a_note_for_each_statement_with_the_functions_it_may_affect(
    project: Path,
) -> None:
    done = jaxsight("check", cwd=project)
    assert done.returncode == 0, "a caveat is no finding"
    assert f"{NOTE} (may affect `scaled`, `halved`)" in done.stdout.splitlines()
    assert "No findings" in done.stdout


@pytest.mark.slow
def test_json_of_check_has_the_functions_that_leave_something_out(project: Path) -> None:
    done = jaxsight("check", "--output-format", "json", cwd=project)
    assert done.returncode == 0
    *found, examined = json.loads(done.stdout)
    assert [one["function"] for one in found] == ["scaled", "halved"]
    assert all(completeness(one) == INCOMPLETE for one in found)
    assert examined["code"] == "examined"


@pytest.mark.slow
def test_check_compares_with_the_imported_module_on_request(project: Path) -> None:
    done = jaxsight("check", "--verify-import", cwd=project)
    assert done.returncode == 1
    assert "warning[JX912]: `scaled` was traced without this statement" in done.stdout
    assert "verified 1 function in 1 file\n" in done.stdout
    done = jaxsight("check", "--verify-import", "--verify-timeout", "0.1", cwd=project)
    assert "information[JX913]: importing the module took longer than 0.1 s" in done.stdout


RAISING = """\
import jax.numpy as jnp
from helping import product
print(product(jnp.ones((2, 3)), jnp.ones((2, 3))))
"""
HELPER = """\
import jax.numpy as jnp


def product(x, y):
    '''Half of a product.

    Its error is on the line of `train()` in the other file.
    '''
    half = x / 2

    return half @ y
"""


@pytest.mark.slow
def test_an_error_that_another_file_raises_does_not_hide_a_note(project: Path) -> None:
    text = RAISING + MODEL
    line = text.splitlines().index("train()  # jaxsight: never")
    assert HELPER.splitlines().index("    return half @ y") == line
    (project / "helping.py").write_text(HELPER)
    (project / "raising.py").write_text(text)
    done = terminal.jaxsight("check", "raising.py", cwd=project)
    assert "error[JX330]" in done.stdout
    assert f"note: raising.py:{line + 1}: {REASON}" in done.stdout


def test_figures_of_an_unknown_size_begin_with_the_number_taken_for_it(tmp_path: Path) -> None:
    file = tmp_path / "sized.py"
    file.write_text(
        "import jax\nimport jax.numpy as jnp\n\nvocab = len(set(open('none.txt').read()))\n\n\n"
        "@jax.jit\ndef f(x):\n    return jnp.sum(x, 0)\n\n\nf(jnp.ones((vocab, 4)))\n",
        encoding="utf-8",
    )
    done = jaxsight("kernels", f"{file}:f", "--python", sys.executable, cwd=tmp_path)
    assert "assumed inputs: sizes where ?V=68060160" in done.stdout
    assert "with assumed sizes" in " ".join(done.stdout.split())
