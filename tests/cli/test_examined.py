"""What `jaxsight check` examined: counted by the origin of inputs, with reasons for the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import project
from tests.cli.test_inputs import ASSUMED, CALLED
from tests.terminal import jaxsight

__all__ = ["project"]

TESTS = """\
import jax.numpy as jnp


def test_ones():
    assert jnp.ones(3).sum() == 3
"""


@pytest.fixture
def folder(project: Path) -> Path:
    (project / "model.py").unlink()
    (project / "assumed.py").write_text(ASSUMED)
    (project / "called.py").write_text(CALLED)
    (project / "broken.py").write_text("import jax\n\n\ndef f(:\n")
    (project / "test_ones.py").write_text(TESTS)
    return project


def test_functions_are_counted_by_the_origin_of_their_inputs(folder: Path) -> None:
    done = jaxsight("check", "--output-format", "json", cwd=folder)
    objects = json.loads(done.stdout)
    by_file = {Path(o["filename"]).name: o for o in objects if o["code"] == "examined"}
    assert by_file["called.py"]["origins"] == {"docstring": 1, "program": 2, "reached": 1}
    assert by_file["assumed.py"]["origins"] == {"assumed": 1}
    [stable] = by_file["assumed.py"]["functions"]
    assert stable["examined"]
    assert stable["origin"] == "assumed"
    assert stable["inputs"].startswith("logits: f32[")
    [test] = by_file["test_ones.py"]["functions"]
    assert (test["examined"], test["kind"]) == (False, "program")
    codes = {(Path(o["filename"]).name, o["code"]) for o in objects}
    assert ("broken.py", "invalid-syntax") in codes


def test_findings_of_assumed_inputs_do_not_depend_on_them_and_are_marked(folder: Path) -> None:
    done = jaxsight("check", "assumed.py", "--output-format", "json", cwd=folder)
    [finding] = [o for o in json.loads(done.stdout) if o["severity"] != "information"]
    assert finding["code"] == "JX417"
    assert finding["assumed_inputs"].startswith("logits: f32[")
    assert finding["fix"] is None
    assert done.returncode == 1


WEAK = """\
import jax.numpy as jnp


def weak(x):
    # x: (N,)
    return jnp.where(x > 0, 1.0, 2.0)
"""
WRITTEN = '    """\n    Example inputs:\n        x: f32[8]\n    """\n'


def test_findings_that_depend_on_inputs_need_inputs_that_are_not_assumed(folder: Path) -> None:
    (folder / "weak.py").write_text(WEAK)
    done = jaxsight("check", "weak.py", cwd=folder)
    assert done.stdout == "No findings: examined 1 of 1 function (1 assumed) in 1 file.\n"
    head = "def weak(x):\n"
    (folder / "weak.py").write_text(WEAK.replace(head, head + WRITTEN))
    done = jaxsight("check", "weak.py", cwd=folder)
    assert "information[JX301]" in done.stdout


def test_a_function_that_ends_the_process_hides_no_other(folder: Path) -> None:
    (folder / "dies.py").write_text(
        "import os\n\nimport jax.numpy as jnp\n\n\n"
        f"def dies(x):\n{WRITTEN}    os.abort()\n\n\n"
        f"def lives(x):\n{WRITTEN}    return jnp.log1p(jnp.exp(x))\n"
    )
    done = jaxsight("check", "dies.py", cwd=folder)
    assert "error[JX400]" in done.stdout
    assert "warning[JX417]" in done.stdout
    assert "examined 2 of 2 functions (2 docstring) in 1 file." in done.stdout


def test_fixes_are_not_applied_where_inputs_are_assumed(folder: Path) -> None:
    done = jaxsight("check", "assumed.py", "--fix", "--unsafe-fixes", cwd=folder)
    assert (folder / "assumed.py").read_text() == ASSUMED
    assert "Nothing fixed." in done.stdout
    assert "note: assumed inputs: logits: f32[" in done.stdout


def test_nothing_examined_has_an_exit_status_of_its_own(folder: Path) -> None:
    done = jaxsight("check", "assumed.py", "--inputs", "written", cwd=folder)
    assert done.returncode == 3
    assert done.stdout == (
        "No findings: examined 0 of 1 function in 1 file.\n"
        "1 function not examined: 1 without inputs. List them with --verbose.\n"
    )


def test_the_time_for_proposals_is_limited(folder: Path) -> None:
    done = jaxsight("check", "assumed.py", "--inputs-time", "0", "--verbose", cwd=folder)
    assert done.returncode == 3
    assert "note: assumed.py:4: `stable` is not examined: no example inputs\n" in done.stdout
    assert "note: the time limit for inputs was reached in some files" in done.stderr


def test_sarif_and_github_say_that_nothing_was_examined(folder: Path) -> None:
    arguments = ("check", "assumed.py", "--inputs", "written", "--output-format")
    done = jaxsight(*arguments, "sarif", cwd=folder)
    assert done.returncode == 3
    [run] = json.loads(done.stdout)["runs"]
    summary, missed = run["invocations"][0]["toolExecutionNotifications"]
    assert (summary["descriptor"]["id"], summary["level"]) == ("examined", "warning")
    assert summary["properties"] == {"origins": {}, "not_examined": {"untried": 1}}
    assert missed["descriptor"]["id"] == "not-examined"
    assert missed["message"]["text"] == "`stable` is not examined: no example inputs"
    github = jaxsight(*arguments, "github", cwd=folder)
    assert github.stdout == (
        "::warning title=jaxsight (examined)::examined 0 of 1 function; "
        "1 function not examined: 1 without inputs\n"
    )


def test_a_file_that_several_paths_lead_to_is_checked_once(folder: Path) -> None:
    (folder / "link.py").symlink_to("called.py")
    done = jaxsight("check", "called.py", "./called.py", "link.py", "../x", cwd=folder)
    assert "no such file or folder: ../x" in done.stderr
    done = jaxsight("check", "called.py", "./called.py", "link.py", cwd=folder)
    assert done.stdout.endswith(
        "examined 4 of 4 functions (1 docstring, 2 called in programs, 1 reached by others) "
        "in 1 file.\n"
    )


def test_stdin_is_checked_as_the_file_that_it_will_be(folder: Path) -> None:
    text = "import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sin(x)\n\n\nf(jnp.ones(3))\n"
    done = jaxsight("check", "-", "--stdin-filename", "new.py", "--verbose", cwd=folder, input=text)
    assert "note: new.py:4: `f` is examined, inputs as in `f(jnp.ones(3))`\n" in done.stdout
    assert not (folder / "new.py").exists()
    alone = jaxsight("check", "-", cwd=folder, input="if")
    assert (alone.returncode, alone.stdout.splitlines()[1]) == (1, " --> stdin.py:1:3")
    both = jaxsight("check", "-", "assumed.py", cwd=folder)
    assert (both.returncode, both.stdout) == (2, "")
    assert "`-` is stdin" in both.stderr


def test_findings_in_a_notebook_are_in_its_cells(folder: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import jax.numpy as jnp"]},
        {"cell_type": "code", "source": "\ndef f(x):\n    return jnp.log1p(jnp.exp(x))"},
        {"cell_type": "code", "source": ["f(jnp.ones(3))"]},
    ]
    (folder / "book.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    done = jaxsight("check", "book.ipynb", cwd=folder)
    assert " --> book.ipynb:cell 3:3:12\n" in done.stdout.replace("  -->", " -->")
    assert "examined 1 of 1 function (1 called in programs) in 1 file." in done.stdout
    objects = json.loads(
        jaxsight("check", "book.ipynb", "--output-format", "json", cwd=folder).stdout
    )
    finding = next(o for o in objects if o["code"] == "JX417")
    assert (finding["cell"], finding["location"]) == (3, {"row": 3, "column": 12})
    shown = jaxsight("show", "book.ipynb:f", "--what", "jaxpr", cwd=folder)
    assert "log1p" in shown.stdout
    refused = jaxsight("check", "book.ipynb", "--fix", cwd=folder)
    assert refused.returncode == 2
