"""What `verify` finds: each kind of damage, and nothing in a sound dataset."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from jaxsight_dataset.tables import manifest, verification
from jaxsight_dataset.tables.manifest import NoDataset
from tests.jaxsight_dataset.tables.synthetic import dataset, row

TRAIN = "data/train-00000-of-00001"


def problems(out: Path, rows: list[dict[str, Any]], form: str = "parquet") -> dict[str, list[str]]:
    """What is found in a dataset of rows, by kind."""
    verified = verification.verify(out, dataset(out, rows, form))
    return {kind: found for kind, found in verified.problems.items() if found}


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_sound_dataset_has_no_problems(form: str, tmp_path: Path) -> None:
    verified = verification.verify(
        tmp_path, dataset(tmp_path, [row(number) for number in range(20)], form)
    )
    assert verified.is_sound
    assert verified.rows == 20


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"canonical_digest": f"{0:032x}"}, "programs", "row 1 is the same program as row 0"),
        (
            {"split": "test", "template": "of test", "structure_digest": "train-0"},
            "splits",
            r"the structure of row [01] is in test and train",
        ),
        (
            {"split": "test", "template": "train-0"},
            "splits",
            r"the template of row [01] is in test and train",
        ),
        (
            {"validation": {**row(1)["validation"], "eager": "differs: result[0]"}},
            "validation",
            r"row 1: eager: differs: result\[0\]",
        ),
        ({"test_success": False}, "validation", "row 1: test_success is false"),
    ],
)
def test_rows_that_break_a_promise_are_found(
    changes: dict[str, Any], kind: str, text: str, tmp_path: Path
) -> None:
    found = problems(tmp_path, [row(0), row(1, **changes)])
    assert found.keys() == {kind}
    assert re.search(f"{text}$", found[kind][0])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"jaxpr": None}, "jaxpr is missing"),
        ({"number": "1"}, "number is no int64"),
        ({"test_success": 1}, "test_success is no bool"),
        ({"input_shapes": [[3], "4"]}, "input_shapes[1] is no list"),
        ({"provenance": {}}, "provenance.package is missing"),
    ],
)
def test_rows_of_another_schema_are_found(
    changes: dict[str, Any], text: str, tmp_path: Path
) -> None:
    made = dataset(tmp_path, [row(0), row(1)], "jsonl")
    path = tmp_path / f"{TRAIN}.jsonl"
    lines = [json.dumps({**json.loads(path.read_text().splitlines()[0]), **changes}) + "\n"]
    path.write_text("".join(lines + path.read_text().splitlines(keepends=True)[1:]))
    found = verification.verify(tmp_path, made).problems
    assert found["schema"][0].endswith(text)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _without_column(path: Path) -> None:
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.drop_columns(["hlo"]), path)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _with_rows_of(other: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes((path.parent / other).read_bytes()) and None


@pytest.mark.parametrize(
    ("damage", "texts"),
    [
        (_flip, {"files": "has another digest than the manifest"}),
        (Path.unlink, {"files": "train-00000-of-00001.parquet: No such file or directory"}),
        (_pipe, {"files": "train-00000-of-00001.parquet: it is a named pipe, expected a file"}),
        (lambda path: path.write_bytes(b"PAR1"), {"files": "train-00000-of-00001.parquet: "}),
        (_without_column, {"schema": "column hlo is missing"}),
        (
            _with_rows_of("test-00000-of-00001.parquet"),
            {"splits": "row 4 is of split test", "files": "another digest"},
        ),
        (
            lambda path: (path.parent / "more-00000-of-00001.parquet").write_bytes(b""),
            {"files": "data/more-00000-of-00001.parquet is not in the manifest"},
        ),
    ],
    ids=["flipped bit", "missing", "pipe", "truncated", "column", "other split", "unlisted"],
)
def test_damaged_files_are_found(
    damage: Callable[[Path], None], texts: dict[str, str], tmp_path: Path
) -> None:
    made = dataset(tmp_path, [row(number) for number in range(20)])
    damage(tmp_path / f"{TRAIN}.parquet")
    found = verification.verify(tmp_path, made).problems
    for kind, text in texts.items():
        assert any(text in problem for problem in found[kind]), found


def test_the_digest_of_a_dataset_is_that_of_its_files(tmp_path: Path) -> None:
    made = dataset(tmp_path, [row(number) for number in range(4)])
    assert replace(made, files={}).digest != made.digest
    assert made.digest in (tmp_path / "README.md").read_text()


def test_another_digest_than_the_published_one_is_found(tmp_path: Path) -> None:
    made = dataset(tmp_path, [row(number) for number in range(4)])
    assert verification.verify(tmp_path, made, digest=made.digest).is_sound
    found = verification.verify(tmp_path, made, digest="0" * 64)
    assert found.problems["files"] == [f"the digest of the dataset is {made.digest}"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged manifest.json"),
        ("[]", "damaged manifest.json"),
        (
            '{"schema_version": 1}',
            "has schema version 1, and this jaxsight reads 2; make it again, into a new folder",
        ),
    ],
)
def test_a_damaged_manifest_is_no_dataset(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(NoDataset, match=message):
        manifest.read(tmp_path)
