"""What a process observed, as lines of its file.

A line is a JSON list: `[0, file, function, text, is_traced, unwritten]` for a new call,
`[1, number]` for one that is the same as an earlier one of the file, counted from 0, `[2, message]`
for an error of ours, `[3, file, function]` for the first call of a function without arrays, and
`[4, module]` for one that is not found, if the program ends because of that.

This module uses only the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.appended import AppendedFile
from jaxsight.recording.observing.functions import ProjectFunction

NEW, AGAIN, FAILED, PLAIN, MISSING = 0, 1, 2, 3, 4
LARGEST = 8 << 20
"""Maximum size of a file, in bytes, a choice: thousands of calls; it is read in one piece."""
_ENDING = ".calls"
_LONGEST = 300
"""Maximum length of an error, in characters: one or two sentences."""


@dataclass(slots=True)
class LoggedCall:
    """A call, and how often it was observed."""

    file: str
    function: str
    text: str
    is_traced: bool
    unwritten: tuple[tuple[str, str], ...]
    count: int = 1


@dataclass(slots=True)
class Logged:
    """What all processes of a run logged."""

    calls: list[LoggedCall] = field(default_factory=list)
    plain: dict[tuple[str, str], None] = field(default_factory=dict)
    """Files and functions that were called without arrays."""
    missing: dict[str, None] = field(default_factory=dict)
    """Modules that were not found, so that a program ended."""
    errors: dict[str, None] = field(default_factory=dict)


class Log:
    """The file of one process. A child that was forked begins one of its own."""

    def __init__(self, folder: str) -> None:
        self._file = AppendedFile(folder, _ENDING, LARGEST)
        self._count = 0

    def forked(self) -> None:
        """Begin a new file with the next line."""
        self._file.begin()
        self._count = 0

    def add(
        self,
        function: ProjectFunction,
        text: str,
        *,
        is_traced: bool,
        unwritten: Iterable[tuple[str, str]],
    ) -> int:
        """Append a new call, and return its number; -1 if the file is full or cannot be written."""
        line = [NEW, function.file, function.name, text, is_traced, list(unwritten)]
        if not self._append(line):
            return -1
        self._count += 1
        return self._count - 1

    def again(self, number: int) -> None:
        """Append that a call was observed again."""
        self._append([AGAIN, number])

    def plain(self, function: ProjectFunction) -> None:
        """Append that a function was called without arrays."""
        self._append([PLAIN, function.file, function.name])

    def missing(self, module: str) -> None:
        """Append that a module was not found."""
        self._append([MISSING, module])

    def failed(self, message: str) -> None:
        """Append that a call could not be looked at."""
        self._append([FAILED, message[:_LONGEST]])

    def _append(self, line: list[object]) -> bool:
        return self._file.append((json.dumps(line) + "\n").encode())


def read(folder: Path) -> Logged:
    """Return what all processes logged into a folder."""
    logged = Logged()
    for path in reading.below(folder, f"*{_ENDING}"):
        try:
            text = reading.text(path, LARGEST, strict=False)
        except reading.UnreadableError:
            continue
        own: list[LoggedCall] = []
        for line in text.split("\n"):
            try:
                match json.loads(line):
                    case [0, str(file), str(function), str(inputs), bool(traced), unwritten]:
                        reasons = tuple((str(name), str(reason)) for name, reason in unwritten)
                        own.append(LoggedCall(file, function, inputs, traced, reasons))
                    case [1, int(number)]:
                        own[number].count += 1
                    case [2, message]:
                        logged.errors[str(message)] = None
                    case [3, str(file), str(function)]:
                        logged.plain[file, function] = None
                    case [4, module]:
                        logged.missing[str(module)] = None
            except (ValueError, TypeError, LookupError, RecursionError):
                continue  # the last line of a process that was killed may be torn
        logged.calls += own
    return logged


def size(folder: Path) -> int:
    """Return a number that changes whenever a process logs into a folder."""
    return sum(path.stat().st_size for path in reading.below(folder, f"*{_ENDING}"))
