"""The schema: documented, and what `problem` says about rows."""

from __future__ import annotations

import re
from pathlib import Path

from jaxsight_dataset import schema
from jaxsight_dataset.schema import ROWS, Column, List, Struct

PAGE = Path(__file__).parents[2] / "docs" / "dataset" / "dataset.md"
TABLE = re.compile(r"^\| column \| type \| content \|\n(?:\|.*\n)+", re.MULTILINE)
SEED = {
    *("source_code", "jaxpr", "hlo", "category"),
    *("input_shapes", "input_dtypes", "test_success"),
}


def test_the_page_has_every_column(update_fixtures: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [shown] = re.findall(TABLE, text)
    if update_fixtures:
        PAGE.write_text(text.replace(shown, schema.markdown(ROWS)), encoding="utf-8")
    assert shown == schema.markdown(ROWS)


def test_the_names_that_were_asked_for_are_columns() -> None:
    assert {column.name for column in ROWS} >= SEED


def test_columns_are_described_in_one_sentence() -> None:
    for columns in schema.TABLES.values():
        names = [column.name for column in columns]
        assert len(names) == len(set(names))
        for column in columns:
            assert column.description.endswith(".")


def test_tables_in_markdown_have_fields_of_records() -> None:
    fields = Struct((Column("a", "string", "An a."),))
    columns = (Column("of", List(fields), "All.", True), Column("n", List("int64"), "Numbers."))
    assert schema.markdown(columns) == (
        "| column | type | content |\n"
        "|---|---|---|\n"
        "| `of` | list<struct> or null | All. |\n"
        "| `of[].a` | string | An a. |\n"
        "| `n` | list<int64> | Numbers. |\n"
    )


def test_checks_are_fine_or_not() -> None:
    fine = ("passed", "labelled", "not applicable", "not compared: bfloat16")
    assert all(map(schema.is_fine, fine))
    assert not any(map(schema.is_fine, (None, "", "differs: result[0]", "crash: exit status 1")))
