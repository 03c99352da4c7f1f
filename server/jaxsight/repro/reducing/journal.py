"""Remembers the results of checks, in memory and in a file.

A reduction that is started again with the same file repeats the same decisions, without running
anything, until it arrives where it was interrupted.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.repro.failures import Failure


@dataclass(slots=True)
class Journal:
    """Failures by the digests of candidates."""

    file: Path | None = None
    title: str = ""
    resumed: int = 0
    _known: dict[str, Failure] = field(default_factory=dict)

    def failure(self, digest: str) -> Failure | None:
        """Return the failure of a candidate, or None if it is unknown."""
        return self._known.get(digest)

    def add(self, digest: str, failure: Failure) -> None:
        """Remember a failure; it is on disk when this returns."""
        self._known[digest] = failure
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([digest, failure.record()]) + "\n")


def opened(folder: Path | None, title: str) -> Journal:
    """Open the journal in a folder; one of another reduction, by its title, is replaced."""
    if folder is None:
        return Journal(title=title)
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "checks.jsonl", title)
    assert journal.file is not None
    with contextlib.suppress(OSError, ValueError):
        first, *lines = journal.file.read_text(encoding="utf-8").split("\n")
        if json.loads(first) == title:
            for line in lines[:-1]:  # the last one is empty, or was being written
                digest, record = json.loads(line)
                journal._known[digest] = Failure.of_record(record)
    journal.resumed = len(journal._known)
    text = "".join(
        json.dumps([digest, failure.record()]) + "\n" for digest, failure in journal._known.items()
    )
    journal.file.write_text(json.dumps(title) + "\n" + text, encoding="utf-8")
    return journal
