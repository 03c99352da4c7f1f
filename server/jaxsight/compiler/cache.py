"""What was compiled, on disk, by content: a second session answers without compiling.

An entry's name is the digest of all that its content depends on, so entries are never wrong, only old. Several processes may read and write at once: an entry
is written beside and moved into place. What cannot be read is dropped. The least recently used go when there is too much.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import zlib
from pathlib import Path

import platformdirs

from jaxsight.compiler.protocol import COMPILER_VERSION, Compiled
from jaxsight.workers import wire

log = logging.getLogger(__name__)

_ENDING = ".compiled"
_SWEEP = 64
"""Writes after which the size is looked at."""


def digest(*parts: str) -> str:
    """A name for what depends on these."""
    return hashlib.sha256("\0".join((str(COMPILER_VERSION), *parts)).encode()).hexdigest()


class Cache:
    """A folder of entries. Its methods read and write files, so callers with an event loop use a thread."""

    def __init__(self, folder: Path | None = None, limit: int = 512 * 1024 * 1024) -> None:
        """Args: `limit` in bytes; 0 keeps nothing."""
        given = folder or Path(platformdirs.user_cache_dir("jaxsight")) / "compiled"
        self.folder = given / f"v{COMPILER_VERSION}"
        self.limit = limit
        self._written = 0

    def get(self, name: str) -> Compiled | None:
        """The entry of a name; `None` when there is none that can be read."""
        path = self._path(name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        try:
            found = wire.decode(zlib.decompress(data))
        except (zlib.error, wire.WireError) as error:
            log.warning("dropping the broken entry %s: %s", path, error)
            path.unlink(missing_ok=True)
            return None
        if not isinstance(found, Compiled):
            path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def put(self, name: str, compiled: Compiled) -> None:
        """Keep an entry. A disk that is full or not ours is logged, and nothing is kept."""
        if self.limit <= 0:
            return
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            body = wire.encode(compiled)[wire.HEADER.size :]
            descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=".")
            with os.fdopen(descriptor, "wb") as file:
                file.write(zlib.compress(body, 1))
            Path(beside).replace(path)
        except (OSError, wire.WireError) as error:
            log.warning("%s cannot be kept: %s", path, error)
            return
        self._written += 1
        if self._written % _SWEEP == 1:
            self.sweep()

    def sweep(self) -> None:
        """Delete the least recently used entries beyond the limit."""
        entries = []
        for path in self.folder.glob(f"*/*{_ENDING}"):
            with contextlib.suppress(OSError):
                status = path.stat()
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
        for path in self.folder.glob(f"*/*{_ENDING}"):
            path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}{_ENDING}"
