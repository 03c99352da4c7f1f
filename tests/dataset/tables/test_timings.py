"""Measured times of rows: their table, what it replaces, and that the rows stay as they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight.dataset import read_rows
from jaxsight.dataset.schema import TIMINGS, VERSION, problem
from jaxsight.dataset.spec import Spec
from jaxsight.dataset.tables import building, manifest, statistics, verification
from jaxsight.dataset.timings import table
from tests.dataset.tables.conftest import jaxsight
from tests.dataset.tables.synthetic import VERSIONS, dataset, row, store

CRASHES = "import os\n\nos._exit(3)\n"


def timing(number: int, **changes: Any) -> dict[str, Any]:
    """What was measured of a row of `synthetic`."""
    seconds = {column.name: 1e-5 for column in TIMINGS if column.name.endswith("_seconds")}
    source = row(number)
    return {
        **seconds,
        **{name: source[name] for name in ("number", "split", "canonical_digest", "x64")},
        "schema_version": VERSION,
        "direction": "forward",
        "processor": "A",
        "cores": 2,
        "devices": 1,
        "runs": 100,
        "governor": None,
        "load": 0.5,
        "other_cores": None,
        "is_quiet": True,
        "versions": VERSIONS,
        **changes,
    }


def stored(out: Path) -> list[dict[str, Any]]:
    return list(read_rows(out, table="timings"))


@pytest.mark.slow
def test_rows_are_measured_in_a_table_of_their_own(tmp_path: Path) -> None:
    before = dataset(tmp_path / "pairs", [row(0, source_code=CRASHES), row(1)])
    arguments = ("--sample", "2", "--seconds", "0.05", "--python", sys.executable, "--json")
    done = jaxsight("dataset", "time", "pairs", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: running the source of 2 rows as your user\n" in done.stderr
    found = json.loads(done.stdout)
    assert (found["rows"], found["not_measured"]) == (2, {"crash": 1})
    assert found["timings"] == stored(tmp_path / "pairs")
    assert [each["direction"] for each in found["timings"]] == ["forward", "backward"]
    for measured in found["timings"]:
        assert problem(measured, TIMINGS) == ""
        assert (measured["number"], measured["split"]) == (1, row(1)["split"])
        assert 0 < measured["least_seconds"] <= measured["median_seconds"]
        assert measured["overhead_seconds"] > 0
        assert measured["runs"] >= 1
    after = manifest.read(tmp_path / "pairs")
    for path, file in before.files.items():
        assert after.files[path] == file
    assert verification.verify(tmp_path / "pairs", after).is_sound


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_measuring_again_replaces_what_the_same_machine_measured(form: str, tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)), form)
    first = [timing(2, runs=1), timing(1, runs=2), timing(1, processor="B", runs=3)]
    described = table.add(tmp_path, described, first)
    other_jax = {**VERSIONS, "jax": "0.13.0"}
    again = [timing(1, runs=4), timing(1, direction="backward", runs=5)]
    table.add(tmp_path, described, [*again, timing(1, versions=other_jax, runs=6)])
    assert sorted((each["number"], each["runs"]) for each in stored(tmp_path)) == [
        *[(1, 3), (1, 4), (1, 5), (1, 6)],
        (2, 1),
    ]
    assert verification.verify(tmp_path, manifest.read(tmp_path)).is_sound


def test_times_of_another_program_are_found(tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)))
    strange = timing(1, canonical_digest=row(2)["canonical_digest"])
    described = table.add(tmp_path, described, [timing(0), strange])
    found = verification.verify(tmp_path, described).problems["files"]
    assert found == ["timings/train-00000-of-00001.parquet: row 1 is another program"]


def test_times_stay_when_the_dataset_is_built_again(tmp_path: Path) -> None:
    made = store(tmp_path, map(row, range(4)))
    described = building.build(tmp_path, made, Spec(samples=20), VERSIONS, "parquet")
    kept = table.add(tmp_path, described, [timing(3)])
    assert building.build(tmp_path, made, Spec(samples=20), VERSIONS, "parquet") == kept
    assert [each["number"] for each in stored(tmp_path)] == [3]


def test_the_card_and_the_statistics_have_a_line_for_each_machine(tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(8)))
    assert "Measured times" not in (tmp_path / "README.md").read_text(encoding="utf-8")
    measured = [
        *(timing(number, median_seconds=1e-5 * (1 + number)) for number in range(3)),
        timing(3, direction="backward", overhead_seconds=None),
        timing(3, processor=None, cores=8, is_quiet=None),
    ]
    described = table.add(tmp_path, described, measured)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| A | 2 | 0.12.0 | forward | 3 | 3 | 20.0 µs | 10.0 µs |" in text
    assert "| A | 2 | 0.12.0 | backward | 1 | 1 | 10.0 µs | – |" in text
    assert "| unknown | 8 | 0.12.0 | forward | 1 | 0 | 10.0 µs | 10.0 µs |" in text
    assert "config_name: timings" in text
    assert [each.rows for each in statistics.compute(tmp_path, described).timings] == [3, 1, 1]
    printed = jaxsight("dataset", "stats", str(tmp_path), cwd=tmp_path).stdout
    assert ["A", "2", "0.12.0", "forward", "3", "3", "20.0", "µs", "10.0", "µs"] in [
        line.split() for line in printed.splitlines()
    ]
    jaxsight("dataset", "stats", str(tmp_path), "--json", cwd=tmp_path)


def test_a_row_is_shown_with_what_was_measured_of_it(tmp_path: Path) -> None:
    described = dataset(tmp_path, map(row, range(4)))
    measured = [
        timing(1, median_seconds=2e-5, high_seconds=3e-5, is_quiet=False),
        timing(1, direction="backward", overhead_seconds=None, is_quiet=None),
        timing(3, processor=None),
    ]
    table.add(tmp_path, described, measured)
    shown = jaxsight("dataset", "show", str(tmp_path), "1", cwd=tmp_path).stdout
    lines = shown.split("measured on")[1].splitlines()[1:]
    assert [" ".join(line.split()) for line in lines] == [
        "A 2 0.12.0 forward 100 20.0 µs 10.0 µs – 30.0 µs 10.0 µs",
        "A 2 0.12.0 backward 100 10.0 µs 10.0 µs – 10.0 µs –",
        "note: other processes were busy during 1 of 2 measurements: times may be too long",
    ]
    assert "measured on" not in jaxsight("dataset", "show", ".", "2", cwd=tmp_path).stdout
    for number, known in ((1, measured[:2]), (2, [])):
        printed = jaxsight("dataset", "show", ".", str(number), "--json", cwd=tmp_path).stdout
        assert json.loads(printed).get("timings", []) == known


def test_a_dataset_of_pairs_has_no_rows_to_measure(tmp_path: Path) -> None:
    dataset(tmp_path / "fixed", [])
    done = jaxsight(
        "dataset", "time", "fixed", "--sample", "2", "--python", sys.executable, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: fixed has no rows to measure\n"
