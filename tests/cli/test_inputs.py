"""The inputs that the terminal's commands use: those of the editor, in the same order, and named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from jaxsight.recording import recorded_file
from tests.cli.test_commands import project
from tests.terminal import jaxsight

__all__ = ["project"]

CALLED = """\
import jax
import jax.numpy as jnp


def scaled(x, factor):
    return jnp.tanh(x) * factor


def normalized(x):
    return x / jnp.linalg.norm(x)


def loss(batch):
    '''
    Example inputs:
        batch: f32[6]
    '''
    def inner(y):
        return jnp.sum(y)
    return inner(normalized(batch))


print(scaled(jnp.ones((4, 2)), 2.0))
"""
ASSUMED = """\
import jax.numpy as jnp


def stable(
    logits,  # (N, D)
    labels,  # (N, D)
):
    return jnp.log1p(jnp.exp(logits)) - logits * labels
"""


@pytest.fixture
def folder(project: Path) -> Path:
    (project / "called.py").write_text(CALLED)
    (project / "assumed.py").write_text(ASSUMED)
    return project


def test_a_function_is_shown_as_the_module_calls_it(folder: Path) -> None:
    done = jaxsight("show", "called.py:scaled", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("inputs: as in `print(scaled(jnp.ones((4, 2)), 2.0))`\n")
    assert "f32[4,2]" in done.stdout


def test_a_function_is_shown_as_its_caller_calls_it(folder: Path) -> None:
    done = jaxsight("show", "called.py:normalized", "--json", cwd=folder)
    shown = json.loads(done.stdout)
    assert shown["inputs"] == {
        "origin": "program",
        "description": "as called by `loss`",
        "assumed": False,
    }
    assert shown["outputs"] == "f32[6]"


def test_assumed_inputs_are_named_and_a_document_stays_alone_on_stdout(folder: Path) -> None:
    done = jaxsight("show", "assumed.py:stable", "--what", "jaxpr", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "assumed inputs: logits: f32[" in done.stderr
    assert "{ lambda ;" in done.stdout


def test_kernels_of_assumed_inputs_say_so(folder: Path) -> None:
    done = jaxsight("kernels", "assumed.py:stable", "--json", cwd=folder)
    inputs = json.loads(done.stdout)["inputs"]
    assert (inputs["origin"], inputs["assumed"]) == ("assumed", True)
    assert inputs["description"].startswith("logits: f32[")
    table = jaxsight("kernels", "assumed.py:stable", cwd=folder).stdout.splitlines()
    assert re.match(r"assumed inputs: logits: f32\[\w+, \w+\], labels: .* where \w+=\d", table[0])
    assert table[1].endswith(" with assumed sizes")


def test_written_inputs_are_neither_recorded_nor_called_nor_assumed(folder: Path) -> None:
    for address in ("called.py:scaled", "called.py:normalized", "assumed.py:stable"):
        done = jaxsight("show", address, "--inputs", "written", cwd=folder)
        assert (done.returncode, done.stdout) == (2, "")
        function = address.partition(":")[2]
        assert (
            f"error: {function}: no example inputs; add a section to its docstring" in done.stderr
        )


def test_written_inputs_leave_recorded_ones_out(folder: Path) -> None:
    (folder / "run.py").write_text(
        "import jax.numpy as jnp\nfrom assumed import stable\n"
        "stable(jnp.ones((5, 7)), jnp.ones((5, 7)))\n"
    )
    recorded = jaxsight("record", "--", "python", "run.py", cwd=folder)
    assert recorded.returncode == 0, recorded.stderr
    shown = jaxsight("show", "assumed.py:stable", cwd=folder)
    assert shown.stdout.startswith("inputs: as recorded\n")
    assert "f32[5,7]" in shown.stdout
    written = jaxsight("show", "assumed.py:stable", "--inputs", "written", cwd=folder)
    assert written.returncode == 2


def test_a_recording_that_cannot_be_read_is_a_warning(folder: Path) -> None:
    file = recorded_file.path_in(str(folder))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{")
    done = jaxsight("show", "model.py:double", cwd=folder)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_nested_functions_are_listed_and_refused_with_the_reason(folder: Path) -> None:
    unknown = jaxsight("show", "called.py:outer", cwd=folder, fresh=True)
    assert unknown.stderr == (
        "error: no function outer in called.py; "
        "functions: scaled, normalized, loss, loss.<locals>.inner\n"
    )
    nested = jaxsight("show", "called.py:loss.inner", cwd=folder)
    assert nested.returncode == 2
    assert "nested functions cannot be traced directly" in nested.stderr
