"""Tables beside the rows, such as that of measured times: no row depends on them.

A record of them is about a direction of a row, which it names by its number and its program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.dataset.program import Record
from jaxsight.dataset.schema import TABLES, VERSION, problem
from jaxsight.dataset.tables import building, writing
from jaxsight.dataset.tables.files import TableFormat
from jaxsight.dataset.tables.manifest import Manifest

COLUMNS = ("number", "split", "canonical_digest")
"""What `of_row` reads of a row."""


def of_row(row: Record) -> Record:
    """Return the columns of a record that are those of its row."""
    return {"schema_version": VERSION, **{name: row[name] for name in COLUMNS}}


def add(
    out: Path,
    described: Manifest,
    table: str,
    records: Sequence[Record],
    origin: Callable[[Record], str],
) -> Manifest:
    """Add records to a table of a dataset, write its card, and return its manifest.

    They take the place of earlier ones of the same row, direction and origin; all others stay. The
    files of other tables are not touched.

    Args:
        out: the folder of the dataset.
        described: its manifest.
        table: the table of the records.
        records: with all columns.
        origin: returns what a record was made with, as far as records of others are kept beside it.

    Raises:
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format requires pyarrow.
        OSError: the folder cannot be written.
    """
    columns = TABLES[table]
    earlier = (row for _, row in described.read_rows(out, table) if not problem(row, columns))
    kept = {
        (record["number"], record["direction"] != "forward", origin(record)): record
        for record in (*earlier, *records)
    }
    rows = ((table, kept[key]) for key in sorted(kept))
    written = writing.write_tables(out, rows, [table], TableFormat(described.format))
    others = {path: file for path, file in described.files.items() if file.table != table}
    changed = replace(described, files=others | written)
    changed.write(out)
    building.write_card(out, changed)
    return changed
