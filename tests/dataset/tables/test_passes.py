"""What passes of XLA make of rows: their table, its statistics, and that the rows stay."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxsight.dataset import read_rows
from jaxsight.dataset.passes import table
from jaxsight.dataset.schema import PASSES, VERSION, problem
from jaxsight.dataset.tables import manifest, statistics, verification
from tests.dataset.tables.conftest import jaxsight
from tests.dataset.tables.synthetic import VERSIONS, dataset, row

COUNTS = {
    column.name: 0
    for column in next(column.type for column in PASSES if column.name == "passes").of.fields
    if column.name.endswith("_count")
}


def state(position: int, name: str, operations: int, fusions: int = 0) -> dict[str, Any]:
    """What a pass left."""
    changed = {"operation_count": operations, "fusion_count": fusions}
    return {"position": position, "pipeline": name and "p", "name": name, **COUNTS, **changed}


def counted(number: int, *states: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What passes made of a row of `synthetic`."""
    source = row(number)
    return {
        **{name: source[name] for name in ("number", "split", "canonical_digest")},
        "schema_version": VERSION,
        "direction": "forward",
        "passes": list(states) or [state(0, "", 1)],
        "versions": VERSIONS,
        **changes,
    }


def kernels(out: Path) -> Iterator[tuple[int, str, int]]:
    """The kernels on the CPU of each direction of a dataset's rows."""
    for made in read_rows(out):
        for direction in made["directions"]:
            targets = made["targets" if direction == "forward" else "backward_targets"]
            yield made["number"], direction, targets[0]["kernel_count"]


@pytest.mark.slow
def test_the_last_pass_leaves_the_kernels_of_the_row(generated: Path, tmp_path: Path) -> None:
    shutil.copytree(generated / "pairs", tmp_path / "pairs")
    before = manifest.read(tmp_path / "pairs")
    command = ("dataset", "passes", "pairs", "--python", sys.executable, "--json")
    done = jaxsight(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rows"], found["not_compiled"]) == (12, {})
    stored = list(read_rows(tmp_path / "pairs", table="passes"))
    assert sorted(map(json.dumps, stored)) == sorted(map(json.dumps, found["passes"]))
    last = {
        (each["number"], each["direction"], each["passes"][-1]["operation_count"])
        for each in stored
    }
    assert last == {*kernels(tmp_path / "pairs")}
    for each in stored:
        assert problem(each, PASSES) == ""
        assert [one["position"] for one in each["passes"]] == [*range(len(each["passes"]))]
        assert [one["name"] == "" for one in each["passes"]].index(False) == 1
        assert "pipeline-start" not in {one["name"] for one in each["passes"]}
    after = manifest.read(tmp_path / "pairs")
    assert before.files.items() <= after.files.items()
    assert before.digest == after.digest
    assert verification.verify(tmp_path / "pairs", after).is_sound
    # A part of the rows once more, by another process: the same bytes.
    jaxsight(*command, "--sample", "5", "--seed", "1", cwd=tmp_path)
    assert manifest.read(tmp_path / "pairs") == after


@pytest.mark.slow
def test_what_cannot_be_compiled_is_counted(tmp_path: Path) -> None:
    dataset(tmp_path / "pairs", [row(0, stablehlo="module {"), row(1, stablehlo="module {}")])
    command = ("dataset", "passes", "pairs", "--python", sys.executable)
    done = jaxsight(*command, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_compiled"] == {"compile": 3}
    assert list(read_rows(tmp_path / "pairs", table="passes")) == []


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_counting_again_replaces_what_the_same_jaxlib_made(form: str, tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)), form)
    first = [counted(2), counted(1), counted(1, direction="backward")]
    described = table.add(tmp_path, described, first)
    other_numpy, other_jaxlib = {**VERSIONS, "numpy": "3"}, {**VERSIONS, "jaxlib": "0.13.0"}
    again = [counted(1, versions=other_numpy), counted(1, versions=other_jaxlib)]
    described = table.add(tmp_path, described, again)
    stored = read_rows(tmp_path, table="passes")
    assert [(each["number"], each["direction"], each["versions"]) for each in stored] == [
        (1, "forward", other_numpy),
        (1, "forward", other_jaxlib),
        (1, "backward", VERSIONS),
        (2, "forward", VERSIONS),
    ]
    assert verification.verify(tmp_path, described).is_sound


def test_passes_of_another_program_are_found(tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)))
    strange = counted(1, canonical_digest=row(2)["canonical_digest"])
    described = table.add(tmp_path, described, [counted(0), strange])
    found = verification.verify(tmp_path, described).problems["files"]
    assert found == ["passes/train-00000-of-00001.parquet: row 1 is another program"]


def test_the_card_and_the_statistics_add_up_what_each_pass_changes(tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)))
    assert "Passes of XLA" not in (tmp_path / "README.md").read_text(encoding="utf-8")
    states = state(0, "", 9), state(1, "cse", 8), state(2, "fusion", 3, 2), state(3, "cse", 2, 1)
    described = table.add(
        tmp_path, described, [counted(0, *states), counted(1, state(0, "", 1), state(1, "dce", 1))]
    )
    summaries = statistics.compute(tmp_path, described).passes
    found = [(each.name, each.directions, each.operations, each.fusions) for each in summaries]
    assert found == [("all", 2, -7, 1), ("fusion", 1, -5, 2), ("cse", 1, -2, -1), ("dce", 1, 0, 0)]
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| `fusion` | 0.12.0 | 1 | -5 | 2 |" in text
    assert "config_name: passes" in text
    printed = jaxsight("dataset", "stats", str(tmp_path), cwd=tmp_path).stdout
    assert ["fusion", "0.12.0", "1", "-5", "+2"] in [line.split() for line in printed.splitlines()]
    jaxsight("dataset", "stats", str(tmp_path), "--json", cwd=tmp_path)


def test_a_dataset_of_pairs_has_no_rows_to_compile(tmp_path: Path) -> None:
    dataset(tmp_path / "fixed", [])
    done = jaxsight("dataset", "passes", "fixed", "--python", sys.executable, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: fixed has no rows to compile\n"
