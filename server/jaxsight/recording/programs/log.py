"""What a process compiled, as lines of its file.

A line is a JSON object, compressed and in base64: first the process (`process`), then each program
(`program`), errors of ours (`error`) and the end (`end`).

This module uses only the standard library.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.appended import AppendedFile

LARGEST = 256 << 20
"""Maximum size of a file, in bytes, a choice: tens of thousands of programs."""
_LONGEST = 64 << 20
"""Bytes of a line when it is decompressed, a choice: several times the longest texts that are
kept."""
_ENDING = ".programs"
_FAST = 1
"""zlib's level: the program waits for it, and HLO shrinks to a tenth with any."""


class ProgramLog:
    """The file of one process. A child that was forked begins one of its own."""

    def __init__(self, folder: str) -> None:
        self._file = AppendedFile(folder, _ENDING, LARGEST)
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Begin a new file with the next line."""
        self._file.begin()
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, object]) -> None:
        """Append a line, unless the file is full or cannot be written."""
        data = json.dumps(record, default=str).encode()
        line = base64.b64encode(zlib.compress(data, _FAST)) + b"\n"
        with self._lock:
            self._file.append(line)


def logged(folder: Path) -> Iterator[Iterator[Mapping[str, object]]]:
    """Yield the lines of each process that logged into a folder."""
    for path in sorted(reading.below(folder, f"*{_ENDING}")):
        yield _lines(path)


def _lines(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        content = reading.data(path, LARGEST)
    except reading.UnreadableError:
        return
    for line in content.split(b"\n"):
        try:
            unpacked = zlib.decompressobj().decompress(base64.b64decode(line), _LONGEST)
            record = json.loads(unpacked)
        except (ValueError, zlib.error, RecursionError):
            continue  # the last line of a process that was killed may be torn
        if isinstance(record, dict):
            yield record
