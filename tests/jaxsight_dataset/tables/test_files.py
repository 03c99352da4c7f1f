"""Tables as files: the same bytes for the same shards, and what each library reads from them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars
import pyarrow.parquet
import pytest

from jaxsight_dataset.tables import manifest, writing
from jaxsight_dataset.tables.arrow import MissingLibrary
from tests.jaxsight_dataset.tables.synthetic import dataset, row, store

ROWS = [row(number) for number in range(40)]
DISAGREEMENT = row(41, test_success=False)


def contents(out: Path) -> dict[str, bytes]:
    """All files but those of the work folder."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.parent.name != "work"
    }


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_the_same_shards_become_the_same_bytes(form: str, tmp_path: Path) -> None:
    dataset(tmp_path / "first", ROWS, form)
    dataset(tmp_path / "elsewhere" / "second", ROWS, form)
    first = contents(tmp_path / "first")
    assert first == contents(tmp_path / "elsewhere" / "second")
    assert {
        f"data/train-00000-of-00001.{form}",
        f"data/validation-00000-of-00001.{form}",
        f"data/test-00000-of-00001.{form}",
        "README.md",
        "croissant.json",
        "manifest.json",
    } <= first.keys()


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_rows_come_back_as_they_were(form: str, tmp_path: Path) -> None:
    made = dataset(tmp_path, [*ROWS, {"disagreement": DISAGREEMENT}], form)
    stored = {each["number"]: each for _, each in made.read_rows(tmp_path, "rows")}
    assert stored == {each["number"]: each for each in ROWS}
    assert [each for _, each in made.read_rows(tmp_path, "disagreements")] == [DISAGREEMENT]
    assert manifest.read(tmp_path) == made


def test_rows_are_in_the_order_of_numbers_in_files_of_limited_size(tmp_path: Path) -> None:
    made = store(tmp_path, ROWS)
    shards = [tmp_path / "work" / name for name in sorted(made.shards)]
    files = writing.write(tmp_path, shards, "parquet", rows_in_file=10)
    names = [path for path, file in files.items() if file.split == "train"]
    assert names == [f"data/train-{part:05}-of-00003.parquet" for part in range(3)]
    assert [files[name].rows for name in names] == [10, 10, 4]
    numbers: list[int] = []
    for name in names:
        numbers += pyarrow.parquet.read_table(tmp_path / name)["number"].to_pylist()
    assert numbers == [number for number in range(40) if number % 5 < 3]


def test_old_tables_go_and_other_files_stay(tmp_path: Path) -> None:
    dataset(tmp_path, ROWS, "jsonl")
    (tmp_path / "data" / "mine.csv").write_text("1")
    made = store(tmp_path / "again", ROWS[:3])
    shards = [tmp_path / "again" / "work" / name for name in made.shards]
    writing.write(tmp_path, shards, "parquet")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "mine.csv",
        "train-00000-of-00001.parquet",
    ]


def test_json_lines_need_no_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    dataset(tmp_path / "lines", ROWS, "jsonl")
    with pytest.raises(MissingLibrary, match=r'pip install "jaxsight\[dataset\]"'):
        dataset(tmp_path / "parquet", ROWS, "parquet")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stored")
    dataset(out, [*ROWS, {"disagreement": DISAGREEMENT}])
    return out


def test_pyarrow_reads_them(stored: Path) -> None:
    table = pyarrow.parquet.read_table(stored / "data" / "train-00000-of-00001.parquet")
    assert table["targets"][1].as_py()[0]["kernel_count"] == 2
    assert table["input_shapes"][0].as_py() == [[3, 4], []]


def test_duckdb_reads_them(stored: Path) -> None:
    query = f"""
        SELECT target.kernel_count, count(*)
        FROM (SELECT unnest(targets) AS target FROM '{stored}/data/*.parquet')
        GROUP BY ALL ORDER BY ALL
    """
    assert duckdb.sql(query).fetchall() == [(1, 14), (2, 13), (3, 13)]


def test_polars_reads_them(stored: Path) -> None:
    frame = polars.read_parquet(stored / "data" / "*.parquet")
    assert frame.height == 40
    assert frame.filter(polars.col("category") == "math").height == 20


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_datasets_read_the_folder_by_its_card(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset(tmp_path / "pairs", [*ROWS, {"disagreement": DISAGREEMENT}], form)

    def load(*arguments: str) -> Any:
        return datasets.load_dataset(
            str(tmp_path / "pairs"), *arguments, cache_dir=str(tmp_path / "cache")
        )

    rows = load()
    assert {name: len(split) for name, split in rows.items()} == {
        "train": 24,
        "validation": 8,
        "test": 8,
    }
    assert rows["train"][1] == ROWS[1]
    assert load("disagreements")["train"][0] == json.loads(json.dumps(DISAGREEMENT))
    assert caplog.messages == []
