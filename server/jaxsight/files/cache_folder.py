"""A folder of entries in the user's cache, which several processes read and write at once.

An entry is written to a temporary file and renamed. One that is corrupt, or that another user could
have written, is treated as missing (`jaxsight.files.private`). The least recently used entries are
deleted when the folder exceeds its limit.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path

from jaxsight.files import private, reading

log = logging.getLogger(__name__)

_SWEEP = 64
"""Writes between checks of the size, a choice: each check looks at all files."""
_UNFINISHED = 3600.0
"""Seconds past which no process is still writing an entry: it takes milliseconds."""


class CacheFolder:
    """A folder of entries by name.

    Its methods read and write files, so callers with an event loop must use a thread.
    """

    def __init__(self, folder: Path | None, label: str, ending: str, limit: int) -> None:
        """Use a folder.

        Args:
            folder: the folder; without one, nothing is stored.
            label: the kind of the entries, and the version of their format.
            ending: the end of the names of their files: `.compiled`.
            limit: the size of all entries in bytes; 0 stores nothing.
        """
        self.folder = folder
        self.limit = limit
        self._label = label
        self._ending = ending
        self._written = 0

    def load(self, name: str, most: int) -> bytes | None:
        """Return the entry of a name, of at most so many bytes, if there is a trustworthy one."""
        path = self.path(name)
        content = None if path is None else private.load(path, self._label, most)
        if path is not None and content is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def store(self, name: str, content: bytes) -> None:
        """Store an entry; errors such as a full disk are logged."""
        path = self.path(name)
        if path is None or self.limit <= 0 or not private.store(path, self._label, content):
            return
        self._written += 1
        if self._written % _SWEEP == 1:
            self.sweep()

    def sweep(self) -> None:
        """Delete the least recently used entries past the limit, and files of killed processes."""
        for path in self._found(f"{private.UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > _UNFINISHED:
                    path.unlink()
        entries = []
        for path in self._found(f"*{self._ending}"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def clear(self) -> None:
        """Delete all entries."""
        for path in self._found(f"*{self._ending}"):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def path(self, name: str) -> Path | None:
        """Return the file of an entry; `None` without a folder."""
        return None if self.folder is None else self.folder / name[:2] / f"{name}{self._ending}"

    def _found(self, pattern: str) -> list[Path]:
        return [] if self.folder is None else reading.below(self.folder, f"*/{pattern}")
