"""`jaxsight report` as a person runs it: what is in the file. How it looks is for `tests/report`."""

from __future__ import annotations

import getpass
import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight.cli.reporting.anonymous import anonymous
from tests.page.test_page import data_of
from tests.terminal import jaxsight

MODEL = '''\
import jax.numpy as jnp

SCALE = 2.0


def helper(x):
    return jnp.sin(x) * SCALE


def fast(x):
    """
    Example inputs:
        x: f32[B, 64]
        where B=4
    """
    return helper(x).sum()


def slow(x):
    """
    Example inputs:
        x: f32[B, 64]
        where B=4
    """
    return (helper(x) @ helper(x).T).sum()


def unrelated(x):
    return x
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "pyproject.toml").write_text(
        f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "cpu"\n'
    )
    (folder / "model.py").write_text(MODEL)
    return folder


def report(*arguments: str, cwd: Path, status: int = 0) -> Any:
    done = jaxsight("report", *arguments, "-o", "written.html", cwd=cwd)
    assert done.returncode == status, done.stderr
    assert "written.html: " in done.stderr
    assert done.stdout == ""
    return data_of((cwd / "written.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compared(project: Path) -> Any:
    return report(
        "model.py:fast", "--against", "model.py:slow", "--sweep", "B=1,2", "--measure", cwd=project
    )


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.endswith("_seconds")}


@pytest.mark.slow
def test_figures_are_those_of_kernels(project: Path, compared: Any) -> None:
    done = jaxsight("kernels", "model.py:fast", "--json", cwd=project)
    known = json.loads(done.stdout)
    known.pop("schema_version", None)
    assert without_times(compared["entries"][0]["record"]) == without_times(known)


@pytest.mark.slow
def test_functions_are_side_by_side(compared: Any) -> None:
    fast, slow = compared["entries"]
    assert [each["label"] for each in (fast, slow)] == ["fast", "slow"]
    assert (fast["against"], slow["against"]) == (1, None)
    assert fast["shown"]["drawn"]["change"].startswith("temp ")
    assert dict(fast["figures"])["inputs"] == "in the docstring"


@pytest.mark.slow
def test_texts_lead_to_the_source_that_kernels_are_written_in(compared: Any) -> None:
    (source,) = compared["report"]["sources"]
    assert source["name"] == "model.py"
    assert "def helper(x):" in source["text"]
    assert "unrelated" not in source["text"]
    assert source["text"].split("\n")[0] == "def helper(x):"
    assert source["numbers"][0] == 1 + MODEL.split("\n").index("def helper(x):")
    entry = compared["entries"][0]
    assert entry["contents"]["hlo"]["text"].startswith("HloModule")
    (line,) = [each for each in entry["contents"]["jaxpr"]["links"] if each["path"] == "0"]
    assert line["uri"] == source["uri"] == entry["shown"]["uri"]


@pytest.mark.slow
def test_texts_are_all_that_the_panel_shows(compared: Any) -> None:
    contents = compared["entries"][0]["contents"]
    assert sorted(contents) == ["hlo", "jaxpr", "pretty", "stablehlo"]
    assert "stablehlo.sine" in contents["stablehlo"]["text"]
    assert "def fast(x):" in contents["pretty"]["text"]


HISTOGRAM = """\
import jax.numpy as jnp
from jax.experimental import pallas as pl

def histogram(i):
    \"\"\"
    Example inputs:
        i: i32[100000]
    \"\"\"
    return jnp.zeros(16).at[i].add(1.0)

def doubled(x):
    \"\"\"
    Example inputs:
        x: f32[8]
    \"\"\"
    def kernel(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[...]
    return pl.pallas_call(kernel, out_shape=x)(x)
"""


@pytest.mark.slow
def test_findings_are_those_of_all_targets(project: Path) -> None:
    (project / "histogram.py").write_text(HISTOGRAM)
    data = report("histogram.py:histogram", "-t", "cpu", "-t", "cuda:h100", cwd=project)
    found = [(each["code"], each["targets"]) for each in data["report"]["findings"]]
    assert found == [("JX211", ["cuda:h100"])]
    assert "stablehlo.scatter" in data["entries"][1]["contents"]["stablehlo"]["text"]


@pytest.mark.slow
def test_a_text_that_is_not_there_is_told(project: Path) -> None:
    (project / "histogram.py").write_text(HISTOGRAM)
    data = report("histogram.py:doubled", cwd=project, status=1)
    assert "stablehlo" not in data["entries"][0]["contents"]
    (remark,) = data["report"]["remarks"]
    assert remark.startswith("doubled has no StableHLO for cpu: ")


@pytest.mark.slow
def test_sweeps_and_measured_times_are_there_where_they_were_asked_for(
    project: Path, compared: Any
) -> None:
    swept = compared["entries"][0]["swept"]
    assert swept["sizes"] == ["B"]
    assert [row[0] for row in swept["rows"]] == ["1", "2"]
    assert "time (measured)" in dict(compared["entries"][0]["figures"])
    assert compared["entries"][0]["shown"]["drawn"]["measured"] is not None


@pytest.mark.slow
def test_an_anonymous_report_has_no_path_and_no_name_of_the_user(project: Path) -> None:
    text = json.dumps(report("model.py:fast", "--anonymize", cwd=project))
    assert str(project) not in text
    assert sys.prefix not in text
    assert "model.py" in text
    for name in (platform.node(), getpass.getuser()):
        assert len(name) < 3 or name in MODEL or f'"{name}"' not in text


def test_what_names_nobody_is_kept_in_an_anonymous_report() -> None:
    names = [("ada", "user"), ("max", "user"), ("lab.example.org", "host")]
    data = {
        "text": "# ada: see /home/ada/code/model.py, C:\\Users\\ada\\model.py",
        "code": "y = jnp.max(x) / 2 / 3  # a/b, adam",
        "host": ["ssh://ada@gpu7/cuda", "on lab.example.org", 3, None],
    }
    assert anonymous(data, ["a:f32[] = max b"], names) == {
        "text": "# user: see model.py, model.py",
        "code": "y = jnp.max(x) / 2 / 3  # a/b, adam",
        "host": ["ssh://host/cuda", "on host", 3, None],
    }


@pytest.mark.slow
def test_a_function_that_cannot_be_traced_is_told_and_nothing_is_written(project: Path) -> None:
    (project / "broken.py").write_text(
        'def broken(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n    return x @ x.nothing\n'
    )
    done = jaxsight("report", "broken.py:broken", "-o", "broken.html", cwd=project)
    assert done.returncode == 1
    assert "nothing" in done.stderr
    assert not (project / "broken.html").exists()


@pytest.mark.slow
def test_what_cannot_be_had_of_several_functions_is_told_in_the_report(project: Path) -> None:
    (project / "some.py").write_text(
        MODEL
        + '\n\ndef broken(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n    return x.nothing\n'
    )
    done = jaxsight("report", "some.py:fast", "some.py:broken", "-o", "some.html", cwd=project)
    assert done.returncode == 1
    data: Any = data_of((project / "some.html").read_text(encoding="utf-8"))
    assert [entry["label"] for entry in data["entries"]] == ["fast"]
    assert data["report"]["remarks"] == ["broken cannot be traced"]


def test_sizes_that_are_none_are_told(project: Path) -> None:
    done = jaxsight("report", "model.py:fast", "--sweep", "large", cwd=project)
    assert done.returncode == 2
    assert "invalid sizes 'large'; write e.g. B=1..64" in done.stderr
