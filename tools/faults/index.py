"""The index of a recorded run: the tests of each line, with their durations."""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools.faults.rows import SERVER, Recorded
from tools.suite.results import PASSED, of_pytest

_SCHEMA = """
CREATE TABLE tests (
    number INTEGER PRIMARY KEY, name TEXT, seconds REAL, slow INTEGER, passes INTEGER
);
CREATE TABLE files (file TEXT PRIMARY KEY, digest TEXT);
CREATE TABLE lines (file TEXT, line INTEGER, direct BLOB, started BLOB, PRIMARY KEY (file, line));
"""
UNKNOWN_SECONDS = 0.5
"""Of a test that reports do not hold."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test of the recorded run."""

    name: str
    """Its node id."""
    seconds: float = UNKNOWN_SECONDS
    slow: bool | None = None
    """Whether it is marked as slow; `None` where reports do not hold it."""
    passes: bool = True

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.name.partition("::")[0]


def write(recorded: Recorded, root: Path, reported: Mapping[str, Case], index: Path) -> None:
    """Write an index, in place of an older one.

    Args:
        recorded: the rows of the run.
        root: the tree that it ran in.
        reported: tests by their names.
        index: the file.
    """
    index.unlink(missing_ok=True)
    with closing(sqlite3.connect(index)) as database:
        database.executescript(_SCHEMA)
        for name, number in recorded.tests.items():
            test = reported.get(name, Case(name))
            database.execute(
                "INSERT INTO tests VALUES (?, ?, ?, ?, ?)",
                (number, name, test.seconds, test.slow, test.passes),
            )
        files = {SERVER + place.decode().rpartition(":")[0] for place in recorded.lines}
        database.executemany(
            "INSERT INTO files VALUES (?, ?)",
            [(file, _digest((root / file).read_text(encoding="utf-8"))) for file in sorted(files)],
        )
        for place, line in recorded.lines.items():
            file, _, number_of_line = place.decode().rpartition(":")
            database.execute(
                "INSERT INTO lines VALUES (?, ?, ?, ?)",
                (SERVER + file, int(number_of_line), _packed(line.direct), _packed(line.started)),
            )
        database.commit()


def reported(reports: Path) -> dict[str, Case]:
    """Return the tests that parts of the suite ran last, by their names."""
    return {
        case.name: Case(case.name, case.seconds, case.is_slow, case.outcome == PASSED)
        for log in sorted(reports.rglob("*.jsonl"))
        for case in of_pytest(log)
    }


class Index:
    """An index that was written.

    Args:
        path: the file.
        root: the tree that tests are run in, where their files may lie in other folders by now.
    """

    def __init__(self, path: Path, root: Path) -> None:
        if not path.is_file():
            raise SystemExit(f"no index {path}: `merge` writes it")
        self._database = sqlite3.connect(path)
        now = _places(root)
        self._tests = {
            number: Case(now(name), seconds, None if slow is None else bool(slow), bool(passes))
            for number, name, seconds, slow, passes in self._database.execute("SELECT * FROM tests")
        }

    def all(self) -> list[Case]:
        """Return all tests that pass."""
        return self._passing({*self._tests})

    def is_of(self, file: str, text: str) -> bool:
        """Return whether the run executed this text of a file."""
        rows = self._database.execute("SELECT digest FROM files WHERE file = ?", (file,))
        return [_digest(text)] == [digest for (digest,) in rows]

    def executed(self, file: str) -> dict[int, bool]:
        """Return the lines of a file that were executed, with whether some test executes them.

        The others were executed by imports alone.
        """
        rows = self._database.execute(
            "SELECT line, length(direct) + length(started) FROM lines WHERE file = ?", (file,)
        )
        return {line: bool(by_tests) for line, by_tests in rows}

    def tests(self, file: str, lines: Iterable[int]) -> tuple[list[Case], list[Case]]:
        """Return the tests of lines, and others that may execute them.

        The others share their file with a test that started a process: one that a fixture keeps
        executes lines of all of them.
        """
        direct, started = set[int](), set[int]()
        for line in lines:
            for row in self._database.execute(
                "SELECT direct, started FROM lines WHERE file = ? AND line = ?", (file, line)
            ):
                direct.update(_unpacked(row[0]))
                started.update(_unpacked(row[1]))
        own = direct | started
        files = {self._tests[number].file for number in started}
        mates = {number for number, test in self._tests.items() if test.file in files} - own
        return self._passing(own), self._passing(mates)

    def _passing(self, numbers: set[int]) -> list[Case]:
        return [self._tests[number] for number in sorted(numbers) if self._tests[number].passes]


def _places(root: Path) -> Callable[[str], str]:
    """Return a function from the node id of a test to that of its file in a tree.

    A file that is not there any more is looked for by its name in other folders of tests.
    """
    by_name = defaultdict[str, list[str]](list)
    for file in (root / "tests").rglob("test_*.py"):
        by_name[file.name].append(file.relative_to(root).as_posix())

    def now(name: str) -> str:
        file, _, rest = name.partition("::")
        same = by_name[file.rpartition("/")[2]]
        return name if file in same or len(same) != 1 else f"{same[0]}::{rest}"

    return now


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _packed(numbers: array[int]) -> bytes:
    return zlib.compress(array("I", sorted({*numbers})).tobytes()) if numbers else b""


def _unpacked(blob: bytes) -> array[int]:
    numbers = array("I")
    if blob:
        numbers.frombytes(zlib.decompress(blob))
    return numbers
