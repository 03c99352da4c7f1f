"""The card: its YAML, its statistics and the Croissant description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Features, load_dataset

from jaxsight_dataset.near_duplicates import NearDuplicates
from jaxsight_dataset.schema import ROWS, TABLES, markdown, type_name
from jaxsight_dataset.tables import statistics
from jaxsight_dataset.tables.features import hugging_face
from tests.jaxsight_dataset.tables.synthetic import dataset, row, target

_PLAIN = {"string", "bool", "int64", "float64", "list<string>", "list<int64>"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("card")
    rows = [row(number) for number in range(1200)]
    rows[7]["minhash"] = [*rows[3]["minhash"][:30], 1, 2]
    rows[8]["minhash"] = [*rows[3]["minhash"][:20], *[1] * 12]
    rows[9]["targets"].append(target("cuda:h100", 5))
    dataset(out, [*rows, {"disagreement": row(1300)}])
    return out


def front_matter(out: Path) -> Any:
    _, head, _ = (out / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head)


def test_the_front_matter_names_the_files_of_each_split(folder: Path) -> None:
    head = front_matter(folder)
    assert (head["license"], head["size_categories"]) == ("cc0-1.0", ["1K<n<10K"])
    assert head["configs"] == [
        {
            "config_name": "rows",
            "default": True,
            "data_files": [
                {"split": "train", "path": "data/train-*"},
                {"split": "validation", "path": "data/validation-*"},
                {"split": "test", "path": "data/test-*"},
            ],
        },
        {
            "config_name": "disagreements",
            "data_files": [{"split": "train", "path": "disagreements/train-*"}],
        },
    ]
    assert [info["config_name"] for info in head["dataset_info"]] == ["rows", "disagreements"]
    assert head["dataset_info"][0]["splits"] == [
        {
            "name": split,
            "num_bytes": (folder / "data" / f"{split}-00000-of-00001.parquet").stat().st_size,
            "num_examples": rows,
        }
        for split, rows in (("train", 720), ("validation", 240), ("test", 240))
    ]


def test_features_are_those_that_datasets_reads_from_the_files(
    folder: Path, tmp_path: Path
) -> None:
    rows = load_dataset(
        "parquet", data_files=str(folder / "data" / "test-*"), cache_dir=str(tmp_path)
    )
    stored = rows["train"].features
    assert Features._from_yaml_list(front_matter(folder)["dataset_info"][0]["features"]) == stored


@pytest.mark.parametrize("table", TABLES)
def test_features_of_every_table_are_read(table: str) -> None:
    features = Features._from_yaml_list(hugging_face(TABLES[table]))
    assert list(features) == [column.name for column in TABLES[table]]


def test_licences_of_mined_rows_make_the_card_other(tmp_path: Path) -> None:
    mined = {"package": "optax", "version": "1", "path": "optax/a.py", "licence": "Apache-2.0"}
    mined["source"] = "def f(x): ..."
    dataset(tmp_path, [row(0), row(1, provenance=mined)])
    assert front_matter(tmp_path)["license"] == "other"


def test_statistics_count_rows(folder: Path) -> None:
    from jaxsight_dataset.tables import manifest

    found = statistics.compute(folder, manifest.read(folder))
    assert (found.rows, found.programs, found.structures) == (1200, 1200, 1200)
    assert (found.templates, found.near_duplicates, found.disagreements) == (9, 1, 1)
    assert found.counts["split"] == {"train": 720, "test": 240, "validation": 240}
    assert found.counts["category"] == {"loops": 600, "math": 600}
    assert found.counts["dtype"] == {"float32": 1200, "int32": 1200}
    assert found.counts["equations"] == {"2–3": 120, "4–7": 240, "8–15": 480, "16–31": 360}
    assert found.kernels == {"cpu": {"1": 400, "2": 400, "3": 400}, "cuda:h100": {"4–5": 1}}
    assert found.checks["gradient"] == {"not applicable": 600, "passed": 600}
    assert found.rejected == {"constant result": 5}


def test_the_card_has_the_columns_the_checks_and_the_counts(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert markdown(ROWS) in text
    for part in (
        "| near duplicates (MinHash ≥ 0.9) | 1 | 0.1 % |",
        "| `sin` | 1,200 | 100.0 % |",
        "| constant result | 5 |",
        "not applicable: 600, passed: 600",
        "| Kernels on cuda:h100 | rows | share |\n| --- | ---: | ---: |\n| `4–5` | 1 | 0.1 % |",
        "| `16–31` | 360 | 30.0 % |",
    ):
        assert part in text


def test_croissant_names_files_with_digests_and_columns_without_records(folder: Path) -> None:
    described = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    files = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    digests = {each["@id"]: each.get("sha256") for each in described["distribution"]}
    assert {name: file["sha256"] for name, file in files.items()}.items() <= digests.items()
    rows, disagreements = described["recordSet"]
    assert [field["name"] for field in rows["field"]] == [
        column.name for column in ROWS if type_name(column.type) in _PLAIN
    ]
    assert disagreements["@id"] == "disagreements"


def test_near_duplicates_resemble_a_row_that_is_kept() -> None:
    base = list(range(32))
    near = NearDuplicates()
    for signature in (
        base,
        base,  # equal
        [*base[:29], 7, 7, 7],  # 29 of 32 hashes: 0.906
        [*base[:28], 7, 7, 7, 7],  # 28 of 32: 0.875
        [8] * 32,
    ):
        near.add(signature)
    assert near.count == 2
