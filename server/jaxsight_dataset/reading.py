"""Reads datasets in Python: `jaxsight_dataset.read_rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxsight_dataset.program import Record
from jaxsight_dataset.tables import files, manifest


def read_rows(
    folder: str | Path,
    *,
    table: str = "rows",
    split: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Record]:
    """Yield the rows of a dataset as dictionaries, in the order of their numbers within a split.

    Args:
        folder: what `jaxsight dataset generate` or `mine` wrote.
        table: `rows` or `disagreements`.
        split: `train`, `validation` or `test`; all of them by default.
        columns: the columns to read; all of them by default. `jaxsight_dataset.schema` has their
            names, types and meanings.

    Raises:
        NoDataset: there is no dataset in the folder.
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format is Parquet, and pyarrow is not installed.
    """
    path = Path(folder)
    described = manifest.read(path)
    for name in described.of_table(table, split):
        yield from files.read_rows(files.inside(path, name), columns)
