"""What a process observed, as records of its file.

They have `call` for a new call, `again` for one that is the same as an earlier one of the file,
counted from 0, `error` for an error of ours, `plain` for the first call of a function without
arrays, and `missing` for a module that is not found, if the program ends because of that.

This module uses only the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.appended import AppendedRecords, appended
from jaxsight.recording.observing.functions import ProjectFunction

LARGEST = 8 << 20
"""Maximum size of a file, in bytes, a choice: thousands of calls; it is read in one piece."""
_ENDING = ".calls"


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


class Log(AppendedRecords):
    """The file of one process."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, _ENDING, LARGEST)

    def begin(self) -> None:
        super().begin()
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
        call = [function.file, function.name, text, is_traced, list(unwritten)]
        if not self.append({"call": call}):
            return -1
        self._count += 1
        return self._count - 1


def read(folder: Path) -> Logged:
    """Return what all processes logged into a folder."""
    logged = Logged()
    for records in appended(folder, _ENDING, LARGEST):
        own: list[LoggedCall] = []
        for record in records:
            match record:
                case {"call": [str(file), str(name), str(inputs), bool(traced), list(unwritten)]}:
                    reasons = tuple((str(of), str(reason)) for of, reason in unwritten)
                    own.append(LoggedCall(file, name, inputs, traced, reasons))
                case {"again": int(number)} if number < len(own):
                    own[number].count += 1
                case {"error": str(message)}:
                    logged.errors[message] = None
                case {"plain": [str(file), str(function)]}:
                    logged.plain[file, function] = None
                case {"missing": str(module)}:
                    logged.missing[module] = None
        logged.calls += own
    return logged


def size(folder: Path) -> int:
    """Return a number that changes whenever a process logs into a folder."""
    return sum(path.stat().st_size for path in reading.below(folder, f"*{_ENDING}"))
