"""The manifest of a dataset: what it was made of, and the digests of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from jaxsight.files import reading
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import TABLES, VERSION
from jaxsight_dataset.tables import files

NAME = "manifest.json"


class SplitName(StrEnum):
    """The parts of a dataset, which share no structure."""

    train = "train"
    validation = "validation"
    test = "test"


SPLITS = tuple(map(str, SplitName))


class NoDataset(Exception):
    """A folder has no dataset; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a dataset.

    Attributes:
        table: `rows` or `disagreements`.
        split: `train`, `validation` or `test`.
        rows: how many it has.
        size: in bytes.
        sha256: its digest.
    """

    table: str
    split: str
    rows: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a dataset was made of.

    Attributes:
        format: `parquet` or `jsonl`.
        spec: the specification, with the seed; for mined programs, `packages` with their versions
            and `targets`.
        spec_digest: identifies the specification, but for the seed; empty for mined programs.
        versions: of JAX, jaxlib, NumPy, Python and jaxsight.
        made: what came of the programs, as `making.make.MadeDataset` records it.
        files: by their paths in the folder, with `/`.
        schema_version: that of the columns.
    """

    format: str
    spec: Record
    spec_digest: str
    versions: dict[str, str]
    made: Record
    files: dict[str, File] = field(default_factory=dict)
    schema_version: int = VERSION

    def of_table(self, table: str, split: str | None = None) -> list[str]:
        """Return the paths of a table's files, or of one of its splits."""
        return [
            path
            for path, file in self.files.items()
            if file.table == table and split in (None, file.split)
        ]

    def splits(self, table: str) -> dict[str, int]:
        """Return how many rows each split of a table has, in the order of `SPLITS`."""
        paths = {split: self.of_table(table, split) for split in SPLITS}
        return {
            split: sum(self.files[path].rows for path in each)
            for split, each in paths.items()
            if each
        }

    def size(self, table: str, split: str) -> int:
        """Return the bytes of a table's files of a split."""
        return sum(self.files[path].size for path in self.of_table(table, split))

    def read_rows(
        self, out: Path, table: str, names: Sequence[str] | None = None
    ) -> Iterator[tuple[str, Record]]:
        """Yield the rows of a table, with the path of their file.

        Raises:
            UnreadableFile: a file cannot be read.
            MissingLibrary: the format requires pyarrow.
        """
        for path in self.of_table(table):
            for row in files.read_rows(files.inside(out, path), names):
                yield path, row

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the dataset: of its manifest."""
        return hashlib.sha256(self._text().encode()).hexdigest()

    def write(self, out: Path) -> None:
        """Write the manifest; the same dataset has the same bytes."""
        files.replace_text(out / NAME, self._text())

    def _text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def _file(table: str, split: str, rows: int, size: int, sha256: str) -> File:
    """Return a file as the manifest describes it.

    Raises:
        ValueError: it is of no table or split, or a figure is none.
    """
    figures = type(rows) is int and type(size) is int and min(rows, size) >= 0
    if table not in TABLES or split not in SPLITS or not figures or not isinstance(sha256, str):
        raise ValueError(f"invalid file of table {table!r} and split {split!r}")
    return File(table, split, rows, size, sha256)


def read(out: Path) -> Manifest:
    """Return the manifest of a folder.

    Raises:
        NoDataset: there is none, or it is damaged, or has another schema.
    """
    try:
        content = reading.data(reading.inside(out, NAME))
    except reading.MissingError as error:
        raise NoDataset(f"no dataset in {out}: {NAME} is missing") from error
    except reading.UnreadableError as error:
        raise NoDataset(f"no dataset in {out}: {NAME}: {error.reason}") from error
    try:
        record = json.loads(content)
        version = record["schema_version"]
        if version != VERSION:
            message = f"{out} has schema version {version}, and this jaxsight reads {VERSION}"
            raise NoDataset(f"{message}; make it again, into a new folder")
        parts = {name: _file(**file) for name, file in record.pop("files").items()}
        known = {each.name for each in fields(Manifest)}
        return Manifest(**{name: record[name] for name in known - {"files"}}, files=parts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoDataset(f"damaged {NAME} in {out}: {type(error).__name__}: {error}") from error
