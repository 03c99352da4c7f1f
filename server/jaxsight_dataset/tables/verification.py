"""Checks a dataset: its files, the schema, that rows differ, and what splits share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import TABLES, is_fine, problem
from jaxsight_dataset.tables import arrow, files
from jaxsight_dataset.tables.files import UnreadableFile
from jaxsight_dataset.tables.manifest import Manifest
from jaxsight_dataset.tables.writing import FOLDERS

_MOST = 20
"""Problems of a kind that are kept, a choice: a screen; the rest are counted."""

ProblemKind = Literal["files", "schema", "programs", "splits", "validation", "again"]
KINDS: tuple[ProblemKind, ...] = get_args(ProblemKind)


@dataclass(slots=True)
class Verified:
    """What was found.

    Attributes:
        digest: that of the dataset, by its manifest; empty if rows of several are checked.
        rows: how many rows were checked.
        again: how many rows were made again.
        counts: how many problems there are, by kind.
        problems: the first ones of each kind.
    """

    digest: str = ""
    rows: int = 0
    again: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    problems: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.counts.values())

    def add(self, kind: ProblemKind, text: str) -> None:
        """Note a problem."""
        self.counts[kind] += 1
        if len(self.problems[kind]) < _MOST:
            self.problems[kind].append(text)


class Splits:
    """Finds what is in two splits, and programs that are there twice."""

    COLUMNS = ("canonical_digest", "structure_digest", "template")

    def __init__(self) -> None:
        """Know no row yet."""
        self._programs: dict[str, int] = {}
        self._split_of: dict[str, dict[str, str]] = {"structure_digest": {}, "template": {}}

    def add(self, row: Record, verified: Verified) -> None:
        """Note a row, which has `number`, `split` and `COLUMNS`, and what is wrong with it."""
        number, split = row["number"], row["split"]
        first = self._programs.setdefault(row["canonical_digest"], number)
        if first != number:
            verified.add("programs", f"row {number} is the same program as row {first}")
        for name, known in self._split_of.items():
            other = known.setdefault(row[name], split)
            if other != split:
                what = name.removesuffix("_digest")
                both = " and ".join(sorted((other, split)))
                verified.add("splits", f"the {what} of row {number} is in {both}")


def verify(
    out: Path, manifest: Manifest, on_row: Callable[[], None] = lambda: None, digest: str = ""
) -> Verified:
    """Check the files of a dataset, and all of its rows.

    Args:
        out: its folder.
        manifest: its manifest.
        on_row: called after each row.
        digest: what the digest of the dataset has to be; empty if that is not known.

    Raises:
        MissingLibrary: the format requires pyarrow.
    """
    verified = Verified(manifest.digest)
    if digest and digest != verified.digest:
        verified.add("files", f"the digest of the dataset is {verified.digest}")
    readable = _files(out, manifest, verified)
    splits = Splits()
    numbers: set[int] = set()
    for path in readable:
        table, rows = manifest.files[path].table, 0
        try:
            for row in files.read_rows(files.inside(out, path)):
                rows += 1
                on_row()
                _row(row, path, manifest, verified)
                if table == "rows" and not problem(row, TABLES[table]):
                    verified.rows += 1
                    splits.add(row, verified)
                    if row["number"] in numbers:
                        verified.add("programs", f"{path}: two rows have number {row['number']}")
                    numbers.add(row["number"])
        except UnreadableFile as error:
            verified.add("files", str(error))
            continue
        if rows != manifest.files[path].rows:
            verified.add("files", f"{path} has {rows} rows of {manifest.files[path].rows}")
    return verified


def _files(out: Path, manifest: Manifest, verified: Verified) -> list[str]:
    """Check all files against the manifest, and return those that can be read."""
    readable: list[str] = []
    for path, file in sorted(manifest.files.items()):
        try:
            if files.digest(files.inside(out, path)) != file.sha256:
                verified.add("files", f"{path} has another digest than the manifest")
            _columns(out, path, file.table, verified)
        except UnreadableFile as error:
            verified.add("files", str(error))
            continue
        readable.append(path)
    for folder in FOLDERS.values():
        for unlisted in sorted((out / folder).glob(f"*.{manifest.format}")):
            name = f"{folder}/{unlisted.name}"
            if name not in manifest.files:
                verified.add("files", f"{name} is not in the manifest")
    return readable


def _columns(out: Path, path: str, table: str, verified: Verified) -> None:
    stored = files.stored_columns(files.inside(out, path))
    if stored is None:
        return
    expected = files.columns_of(arrow.schema(TABLES[table]))
    missing = [column for column in expected if column not in stored]
    unknown = [column for column in stored if column not in expected]
    for column in (*missing, *unknown):
        state = "is missing" if column in missing else "is unknown"
        verified.add("schema", f"{path}: column {column.partition(':')[0]} {state}")


def _row(row: Record, path: str, manifest: Manifest, verified: Verified) -> None:
    file = manifest.files[path]
    where = f"{path}: row {row.get('number')}"
    if wrong := problem(row, TABLES[file.table]):
        verified.add("schema", f"{where}: {wrong}")
        return
    if file.split != row["split"]:
        verified.add("splits", f"{where} is of split {row['split']}")
    if file.table == "rows":
        failed = [name for name, check in row["validation"].items() if not is_fine(check)]
        for name in failed:
            verified.add("validation", f"{where}: {name}: {row['validation'][name]}")
        if not failed and not row["test_success"]:
            verified.add("validation", f"{where}: test_success is false")
