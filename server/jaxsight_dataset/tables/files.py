"""Files of a dataset: one table and split each, read and written a few rows at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from jaxsight.files import private, reading
from jaxsight.text import units
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import Column
from jaxsight_dataset.tables import arrow


class TableFormat(StrEnum):
    """How tables are stored."""

    parquet = "parquet"
    jsonl = "jsonl"


_PARQUET = f".{TableFormat.parquet}"

_GROUP = 250
"""Rows of a row group, a choice: readers hold whole groups in memory; small ones compress less."""

_LONGEST = reading.SOURCE
"""Bytes of a line, which is one row: its text is far below that of the largest Python file."""
_LONGEST_SHOWN = units.size(_LONGEST)

_WITH_STATISTICS = ("number", "category", "difficulty", "equation_count", "split", "template")
"""Columns whose least and greatest values are stored: queries skip row groups by them."""


class UnreadableFile(Exception):
    """A file is missing or damaged; the text says which, and why."""


class TableWriter(Protocol):
    """Writes rows into a file."""

    def add(self, row: Record) -> None:
        """Write a row, now or later."""
        ...

    def close(self) -> None:
        """Complete the file."""
        ...


class _JsonLines:
    def __init__(self, path: Path, columns: tuple[Column, ...]) -> None:
        self._names = [column.name for column in columns]
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def add(self, row: Record) -> None:
        ordered = {name: row.get(name) for name in self._names}
        self._file.write(json.dumps(ordered, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._file.close()


class _Parquet:
    def __init__(self, path: Path, columns: tuple[Column, ...]) -> None:
        self._library = arrow.pyarrow()
        self._schema = arrow.schema(columns)
        self._rows: list[Record] = []
        names = [column.name for column in columns]
        self._writer = self._library.parquet.ParquetWriter(
            path,
            self._schema,
            version="2.6",
            compression="zstd",
            compression_level=7,  # a choice: higher ones of zstd's 22 take much longer
            write_statistics=[name for name in _WITH_STATISTICS if name in names],
        )

    def add(self, row: Record) -> None:
        self._rows.append(row)
        if len(self._rows) == _GROUP:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(self._library.Table.from_pylist(self._rows, self._schema))
        self._rows.clear()


def writer(path: Path, columns: tuple[Column, ...]) -> TableWriter:
    """Return what writes a new file; its suffix is the format.

    Raises:
        MissingLibrary: the format requires pyarrow.
    """
    return _Parquet(path, columns) if path.suffix == _PARQUET else _JsonLines(path, columns)


def read_rows(path: Path, names: Sequence[str] | None = None) -> Iterator[Record]:
    """Yield the rows of a regular file, with some columns or all.

    Raises:
        UnreadableFile: it cannot be read.
        MissingLibrary: its format requires pyarrow.
    """
    if path.suffix == _PARQUET:
        yield from _parquet_rows(path, names)
        return
    for number, line in enumerate(lines(path), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"{path.name}:{number}: invalid JSON: {error}") from error
        if not isinstance(row, dict):
            raise UnreadableFile(f"{path.name}:{number}: expected a record")
        yield row if names is None else {name: row.get(name) for name in names}


def _parquet_rows(path: Path, names: Sequence[str] | None) -> Iterator[Record]:
    library = arrow.pyarrow()
    try:
        with reading.opened(path) as opened, library.parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(_GROUP, columns=None if names is None else [*names]):
                yield from batch.to_pylist()
    except reading.UnreadableError as error:
        raise UnreadableFile(f"{path.name}: {error.reason}") from error
    except (OSError, library.ArrowException) as error:
        raise UnreadableFile(f"{path.name}: {error}") from error


def stored_columns(path: Path) -> list[str] | None:
    """Return the columns of a Parquet file with their types, None for JSON Lines.

    Raises:
        UnreadableFile: it cannot be read.
        MissingLibrary: pyarrow is not installed.
    """
    if path.suffix != _PARQUET:
        return None
    library = arrow.pyarrow()
    try:
        with reading.opened(path) as opened:
            stored = library.parquet.read_schema(opened)
    except reading.UnreadableError as error:
        raise UnreadableFile(f"{path.name}: {error.reason}") from error
    except (OSError, library.ArrowException) as error:
        raise UnreadableFile(f"{path.name}: {error}") from error
    return columns_of(stored)


def columns_of(stored: Any) -> list[str]:
    """Return the columns of a `pyarrow.Schema`, as `name: type`."""
    return [f"{field.name}: {field.type}" for field in stored]


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a regular file.

    Raises:
        UnreadableFile: it cannot be read, or has a line of more than `_LONGEST` bytes.
    """
    try:
        with reading.opened(path) as file:
            while line := file.readline(_LONGEST + 1):
                if len(line) > _LONGEST:
                    raise UnreadableFile(f"{path.name}: a line is longer than {_LONGEST_SHOWN}")
                yield line
    except reading.UnreadableError as error:
        raise UnreadableFile(f"{path.name}: {error.reason}") from error


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file.

    Raises:
        UnreadableFile: it cannot be read.
    """
    try:
        with reading.opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except reading.UnreadableError as error:
        raise UnreadableFile(f"{path.name}: {error.reason}") from error


def inside(out: Path, name: str) -> Path:
    """Return the path of a file that the manifest of a folder names.

    Raises:
        UnreadableFile: it is outside of the folder.
    """
    try:
        return reading.inside(out, name)
    except reading.UnreadableError as error:
        raise UnreadableFile(f"{name}: {error.reason}") from error


def replace_text(path: Path, text: str) -> None:
    """Write a file beside its place, and rename it; a link is replaced, not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    private.replace(path, text.encode(), 0o644)
