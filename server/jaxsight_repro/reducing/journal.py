"""Remembers the results of checks, in memory and in a file.

A reduction that is started again with the same file repeats the same decisions, without running
anything, until it arrives where it was interrupted.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from jaxsight_repro.failures import RunFailure


class Journal:
    """Failures by the digests of candidates."""

    def __init__(self, folder: Path | None, title: str) -> None:
        """Open the journal in a folder; one of another reduction, by its title, is replaced."""
        self._known: dict[str, RunFailure] = {}
        self._file = None if folder is None else folder / "checks.jsonl"
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, ValueError):
            first, *lines = self._file.read_text(encoding="utf-8").split("\n")
            if json.loads(first) == title:
                for line in lines[:-1]:  # the last one is empty, or was being written
                    digest, record = json.loads(line)
                    self._known[digest] = RunFailure(**record)
        lines = [json.dumps(title) + "\n", *map(_line, self._known.items())]
        self._file.write_text("".join(lines), encoding="utf-8")

    def failure(self, digest: str) -> RunFailure | None:
        """Return the failure of a candidate, or None if it is unknown."""
        return self._known.get(digest)

    def add(self, digest: str, failure: RunFailure) -> None:
        """Remember a failure; it is on disk when this returns."""
        self._known[digest] = failure
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(_line((digest, failure)))


def _line(entry: tuple[str, RunFailure]) -> str:
    digest, failure = entry
    return json.dumps([digest, failure.record()]) + "\n"
