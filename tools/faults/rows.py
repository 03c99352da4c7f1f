"""Reads what `lines.py` recorded: which tests execute which line of the server."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SERVER = "server/jaxsight"


@dataclass(slots=True)
class Line:
    """The numbers of the tests that execute a line."""

    direct: array[int] = field(default_factory=lambda: array("I"))
    """In the process of pytest."""
    started: array[int] = field(default_factory=lambda: array("I"))
    """In processes that a test started. They report a line once, for the test that started them,
    although a fixture may keep them for the later tests of its file."""


@dataclass(slots=True)
class Recorded:
    """All rows of a folder."""

    tests: dict[str, int] = field(default_factory=dict)
    """The number of each test, by its node id."""
    lines: dict[bytes, Line] = field(default_factory=dict)
    """By `/FILE:LINE` below the server's package, also lines that no test but an import executed.
    """


def read(folder: Path, root: Path) -> Recorded:
    """Return what the files of a folder record about the server below `root`."""
    recorded = Recorded()
    for file in sorted(folder.iterdir()):
        with file.open("rb") as rows:
            add(recorded, rows, root)
    exists = {
        path: (root / SERVER / path.decode().lstrip("/")).is_file()
        for path in {place.rpartition(b":")[0] for place in recorded.lines}
    }
    # Tests copy files of the server into folders of the same name.
    recorded.lines = {
        place: line for place, line in recorded.lines.items() if exists[place.rpartition(b":")[0]]
    }
    return recorded


def add(recorded: Recorded, rows: Iterable[bytes], root: Path) -> None:
    """Add the rows of one process."""
    test: int | None = None
    is_first, is_started = True, False
    for row in _whole(rows):
        if row.startswith(b"#"):
            # A test may run pytest itself, on tests that are not ours.
            if (name := row[1:].decode()) and _is_ours(name, root):
                if not (is_started and test is not None):
                    test = recorded.tests.setdefault(name, len(recorded.tests))
            elif not name and not is_started:
                test = None
            is_started = is_started or is_first
        else:
            line = recorded.lines.get(row)
            if line is None:
                line = recorded.lines[row] = Line()
            if test is not None:
                tests = line.started if is_started else line.direct
                if not tests or tests[-1] != test:
                    tests.append(test)
        is_first = False


def _whole(rows: Iterable[bytes]) -> Iterator[bytes]:
    """Yield rows without their ends, but not the last one of a process that is still writing."""
    return (row[:-1] for row in rows if row.endswith(b"\n"))


def _is_ours(name: str, root: Path, known: dict[str, bool] = {}) -> bool:  # noqa: B006 - a cache
    file = name.partition("::")[0]
    if file not in known:
        known[file] = file.startswith("tests/") and (root / file).is_file()
    return known[file]
