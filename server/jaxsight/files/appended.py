"""Records of one process, as lines of a file that only grows: a crash loses nothing.

A line is a JSON object, compressed and in base64. The file is opened for each, because a program
may close any descriptor.

This module uses only the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxsight.files import reading

_LONGEST = 64 << 20
"""Bytes of a line when it is decompressed, a choice: several times the longest texts that are
kept."""
_FAST = 1
"""zlib's level: the program waits for it, and HLO shrinks to a tenth with any."""


class AppendedRecords:
    """The file of this process in a folder. A forked child begins one of its own."""

    def __init__(self, folder: str, ending: str, largest: int) -> None:
        """Begin with an empty file, which is created with the first record.

        Args:
            folder: where it is.
            ending: how its name ends.
            largest: its maximum size, in bytes.
        """
        self._folder = folder
        self._ending = ending
        self._largest = largest
        self.begin()

    def begin(self) -> None:
        """Begin a new file with the next record."""
        name = f"{os.getpid()}-{os.urandom(4).hex()}{self._ending}"
        self._path = os.path.join(self._folder, name)  # noqa: PTH118
        self._size = 0
        # A fork may copy one that another thread holds.
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, object]) -> bool:
        """Append a record; return false if the file is full or cannot be written."""
        line = base64.b64encode(zlib.compress(json.dumps(record, default=str).encode(), _FAST))
        with self._lock:
            return self._append(line + b"\n")

    def _append(self, data: bytes) -> bool:
        if self._size + len(data) > self._largest:
            return False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        flags |= reading.flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            return False
        self._size += len(data)
        return True


def appended(folder: Path, ending: str, largest: int) -> Iterator[Iterator[Mapping[str, object]]]:
    """Yield the records of each process in a folder."""
    for path in sorted(reading.below(folder, f"*{ending}")):
        yield _records(path, largest)


def _records(path: Path, largest: int) -> Iterator[Mapping[str, object]]:
    try:
        content = reading.data(path, largest)
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
