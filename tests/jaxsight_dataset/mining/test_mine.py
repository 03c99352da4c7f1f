"""What `jaxsight dataset mine` makes of a project: functions with example inputs of each kind."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset.cli import mined_sources
from jaxsight_dataset.reading import read_rows
from tests.jaxsight_dataset.tables.conftest import jaxsight

PROJECT = Path(__file__).with_name("project")

ROWS = {
    "damped": [[8, 6], []],
    "energy": [[6, 3]],
    "smoothed": [[6]],
    "doubled": [[5]],
    "Gain.applied": [[4]],
    "waves.public": [[7]],
    "leaky.init": [[4]],
    "leaky.update": [[4], [], [4]],
}
"""The shapes of the arguments of each function that becomes a row."""


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project and its dataset `out`, and what the command printed."""
    folder = tmp_path_factory.mktemp("mined")
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    done = jaxsight(
        *("dataset", "mine", "./src", "out", "--format", "jsonl", "--jobs", "1", "--json"),
        *("--python", sys.executable),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    (folder / "made.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def rows(mined: Path) -> dict[str, dict[str, Any]]:
    """The rows by the qualified names of their functions."""
    return {row["template"].removeprefix("waves.filters."): row for row in read_rows(mined / "out")}


@pytest.mark.slow
def test_each_kind_of_example_inputs_makes_a_row(rows: dict[str, Any]) -> None:
    assert {name: row["input_shapes"] for name, row in rows.items()} == ROWS
    assert all(row["test_success"] for row in rows.values())


def test_a_row_names_its_project(rows: dict[str, Any], mined: Path) -> None:
    origin = rows["damped"]["provenance"]
    origin = json.loads(origin) if isinstance(origin, str) else origin
    assert (origin["package"], origin["version"]) == ("waves", "2.1")
    assert origin["licence"] == "Apache-2.0"
    assert origin["path"].startswith("src/waves/filters.py:")
    assert "return signal * jnp.exp(-rate)" in origin["source"]
    assert str(mined) not in json.dumps(list(rows.values()))


def test_the_object_of_a_method_is_part_of_its_program(rows: dict[str, Any]) -> None:
    assert "3.0" in rows["Gain.applied"]["source_code"]


def test_functions_that_are_no_rows_are_counted_by_cause(mined: Path) -> None:
    made = json.loads((mined / "made.json").read_text())["made"]
    assert made["rejected"] == {
        "arguments cannot be flattened": 1,
        "call cannot be traced": 1,
        "crash": 2,
        "example inputs cannot be evaluated": 1,
        "needs several devices": 2,
        "no array argument": 2,
    }
    assert made["surveyed"] == made["rows"] + sum(made["rejected"].values())


def test_a_changed_file_needs_another_folder(mined: Path, tmp_path: Path) -> None:
    shutil.copytree(mined, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "src" / "waves" / "filters.py"
    file.write_text(file.read_text().replace("2.0 * signal", "3.0 * signal"))
    done = jaxsight(
        *("dataset", "mine", "./src", "out", "--format", "jsonl", "--python", sys.executable),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "another specification, seed or JAX" in done.stderr


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("optax", False), ("jax.numpy", False), ("./optax", True), ("a.py", True), (".", True)],
)
def test_paths_are_told_from_packages(argument: str, expected: bool) -> None:
    assert mined_sources.is_path(argument) is expected


def test_sources_are_read_from_text_alone() -> None:
    sources = mined_sources.in_project([PROJECT / "src"])
    doctests = [source["doctest"] for source in sources if "doctest" in source]
    assert doctests == ["doubled", "crashing_example", "public", "keyed", "leaky"]
    traces = {
        source["trace"]["function"]: source["trace"] for source in sources if "trace" in source
    }
    assert {"damped", "energy", "smoothed", "Gain.applied"} <= set(traces)
    assert "doubled" not in traces
    assert traces["smoothed"]["sizes"] == [["n", 6]]
    assert {source["project"]["licence"] for source in sources} == {"Apache-2.0"}


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    done = jaxsight("dataset", "mine", "./none", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: no such file or folder: none\n"
