"""Writes tables from the shards of a work folder, one shard after another.

The same shards become the same bytes: rows are in the order of their numbers, and files have no
time and no name of a machine. Files get their final names when all are complete.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import TABLES
from jaxsight_dataset.tables import files
from jaxsight_dataset.tables.files import TableFormat, TableWriter
from jaxsight_dataset.tables.manifest import File

FOLDERS = {"rows": "data", "disagreements": "disagreements"}
"""The folder of each table."""

_TABLE_OF = {"row": "rows", "disagreement": "disagreements"}
_BESIDE = "tables.tmp"
_NAME = re.compile(r"\w+-\d{5}-of-\d{5}\.(?:parquet|jsonl)")


class _Parts:
    """The files of a table and split, with a limited number of rows each."""

    def __init__(self, folder: Path, table: str, split: str, suffix: str, most: int) -> None:
        self._folder = folder
        self._table = table
        self._split = split
        self._suffix = suffix
        self._most = most
        self._writer: TableWriter | None = None
        self._counts: list[int] = []

    def add(self, row: Record) -> None:
        if self._writer is None or self._counts[-1] == self._most:
            self.close()
            path = self._temporary(len(self._counts))
            self._writer = files.writer(path, TABLES[self._table])
            self._counts.append(0)
        self._writer.add(row)
        self._counts[-1] += 1

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def finish(self, out: Path) -> dict[str, File]:
        """Move the files to their places, and return them by path."""
        made: dict[str, File] = {}
        for number, rows in enumerate(self._counts):
            name = f"{self._split}-{number:05}-of-{len(self._counts):05}.{self._suffix}"
            path = f"{FOLDERS[self._table]}/{name}"
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            self._temporary(number).replace(out / path)
            size = (out / path).stat().st_size
            digest = files.digest(out / path)
            made[path] = File(self._table, self._split, rows, size, digest)
        return made

    def _temporary(self, number: int) -> Path:
        return self._folder / f"{self._table}-{self._split}-{number:05}.{self._suffix}"


def write(
    out: Path, shards: Iterable[Path], form: TableFormat, *, rows_in_file: int = 10000
) -> dict[str, File]:
    """Write the tables that are made of programs, and return their files by path.

    Args:
        out: the folder of the dataset; these tables are replaced.
        shards: files with the records of programs, in the order of the programs' numbers.
        form: that of the tables.
        rows_in_file: the largest number of rows of a file.

    Raises:
        MissingLibrary: the format requires pyarrow.
        UnreadableFile: a shard cannot be read.
    """
    beside = out / _BESIDE
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    parts: dict[tuple[str, str], _Parts] = {}
    try:
        for table, row in _of_shards(shards):
            split = row["split"]
            if (table, split) not in parts:
                parts[table, split] = _Parts(beside, table, split, form, rows_in_file)
            parts[table, split].add(row)
        for part in parts.values():
            part.close()
        for folder in FOLDERS.values():  # which may have other files
            for path in (out / folder).glob("*-of-*"):
                if _NAME.fullmatch(path.name):
                    path.unlink()
        made: dict[str, File] = {}
        for key in sorted(parts, key=lambda key: (list(FOLDERS).index(key[0]), key[1])):
            made |= parts[key].finish(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return made


def _of_shards(shards: Iterable[Path]) -> Iterator[tuple[str, Record]]:
    for shard in shards:
        for line in files.lines(shard):
            ((kind, row), *_) = json.loads(line).items()
            if kind in _TABLE_OF:
                yield _TABLE_OF[kind], row
