"""The questions of a task: a pure function of a dataset, a split, a seed and a limit."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from jaxsight_dataset.program import Record
from jaxsight_dataset.tables import files, manifest
from jaxsight_dataset.tables.files import UnreadableFile
from jaxsight_dataset.tables.manifest import Manifest, NoDataset
from jaxsight_dataset.tasks.task import DatasetTask, TaskItem


@dataclass(frozen=True)
class QuestionSet:
    """What is asked about a dataset.

    Attributes:
        task: the name of the task, such as `kernels`.
        dataset: the folder of the dataset.
        split: `train`, `validation` or `test`.
        seed: another one asks about other rows, kernels and mutants.
        limit: the most rows to ask about; None for all.
        target: the device whose kernels or memory are predicted.
        python: an interpreter that has JAX, for tasks that run programs.
        on_row: called with how many rows questions are made of, and how many there are.
    """

    task: str
    dataset: str | Path
    split: str = "test"
    seed: int = 0
    limit: int | None = None
    target: str = "cpu"
    python: str = sys.executable
    on_row: Callable[[int, int], None] = lambda done, wanted: None

    def __str__(self) -> str:
        """Return how messages name this."""
        limit = "" if self.limit is None else f" and limit {self.limit}"
        target = "" if self.target == "cpu" else f" for {self.target}"
        return f"{self.task}{target} on {self.split} with seed {self.seed}{limit}"

    @cached_property
    def manifest(self) -> Manifest:
        """The dataset's, with whose digests the files of rows agree.

        Raises:
            NoDataset: there is none.
            UnreadableFile: a file differs from it, or cannot be read.
        """
        found = manifest.read(Path(self.dataset))
        for path in found.of_table("rows"):
            if files.digest(files.inside(Path(self.dataset), path)) != found.files[path].sha256:
                raise UnreadableFile(f"{path} has another digest than the manifest")
        return found

    @cached_property
    def digest(self) -> str:
        """Identifies the rows of all splits: a digest of those of their files."""
        paths = self.manifest.of_table("rows")
        named = {path: self.manifest.files[path].sha256 for path in paths}
        return hashlib.sha256(repr(sorted(named.items())).encode()).hexdigest()[:16]

    def items(self, task: DatasetTask) -> list[TaskItem]:
        """Return the questions, in the order of rows; made once, as that may run programs.

        Raises:
            NoDataset, UnreadableFile, MissingLibrary: as `read_rows`.
        """
        if not self._made:
            self._made.append(self._items(task))
        return self._made[0]

    @cached_property
    def _made(self) -> list[list[TaskItem]]:
        return []

    def _items(self, task: DatasetTask) -> list[TaskItem]:
        numbers = [row["number"] for row in self.rows(self.split, ["number"])]
        ordered = sorted(numbers, key=lambda number: self._chance("row", number))
        chosen = frozenset(ordered[: self.limit])
        found: list[TaskItem] = []
        done = 0
        if not self.manifest.of_table("rows"):
            raise NoDataset(f"{self.dataset} has no rows; {self.task} asks about rows")
        for row in self.rows(self.split, ["number", "minhash", *task.columns]):
            if row["number"] not in chosen:
                continue
            self.on_row(done := done + 1, len(chosen))
            try:
                items = task.items(row, self._chance("item", row["number"]))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                damaged = f"row {row['number']} has wrong columns ({type(error).__name__})"
                raise UnreadableFile(damaged) from error
            for item in items:
                identity = "/".join(filter(None, (self.task, str(row["number"]), item.id)))
                question = {"id": identity, **item.question}
                minhash = tuple(row["minhash"])
                found.append(replace(item, id=identity, question=question, minhash=minhash))
        return found

    def rows(self, split: str, names: Sequence[str]) -> Iterator[Record]:
        """Yield the rows of a split, with some columns; errors as those of `items`."""
        for path in self.manifest.of_table("rows", split):
            yield from files.read_rows(files.inside(Path(self.dataset), path), names)

    def _chance(self, purpose: str, number: int) -> int:
        """Return a number that looks random, the same for the same dataset, seed and row."""
        text = f"{self.digest} {self.seed} {purpose} {number}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
