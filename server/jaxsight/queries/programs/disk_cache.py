"""Cache compiled programs on disk by content, so that another session need not compile them.

An entry's name is a digest of everything that its content depends on, so entries are never wrong,
only outdated.
Several processes may read and write at once: an entry is written to a temporary file and renamed.
An entry that is corrupt, or that another user could have written, is treated as missing
(`jaxsight.files.private`).
The least recently used entries are deleted when the cache exceeds its limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from jaxsight.files import private, reading
from jaxsight.files.locks import try_lock
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.compiling import COMPILER_VERSION, Compiled, Folding, SlowCompile

log = logging.getLogger(__name__)

_ENDING = ".compiled"
_KIND = f"compiled program {COMPILER_VERSION}"
_SWEEP = 64
"""Number of writes between checks of the size."""
_UNFINISHED = 3600.0
"""Age in seconds past which no process is still writing an entry."""

_Kept = TypeVar("_Kept", Compiled, Folding, SlowCompile)


def digest(*parts: str) -> str:
    """Return the name of an entry that depends on these parts."""
    return hashlib.sha256("\0".join((str(COMPILER_VERSION), *parts)).encode()).hexdigest()


class Lock:
    """A lock on an entry, until it is released or nobody refers to it any more."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Own the descriptor of a locked file, if any."""
        self._descriptor = descriptor

    def release(self) -> None:
        """Unlock the entry, unless that has been done."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    __del__ = release


class DiskCache:
    """A folder of entries.

    Its methods read and write files, so callers with an event loop must use a thread.
    """

    def __init__(self, folder: Path | None = None, limit: int = 512 * 1024 * 1024) -> None:
        """Use a folder, or the user's cache folder, up to `limit` bytes; 0 stores nothing."""
        top = folder or private.cache_folder("compiled")
        self.folder = None if top is None else top / f"v{COMPILER_VERSION}"
        """The folder of this version's entries; `None` if the user has no cache folder."""
        self.limit = limit
        self._written = 0

    def get(self, name: str) -> Compiled | None:
        """Return the entry of a name, or `None` if there is no trustworthy one."""
        return self.record(name, Compiled)

    def first(self, names: Sequence[str]) -> tuple[str, Compiled] | None:
        """Return the first of some names that has a trustworthy entry, and the entry."""
        entries = ((name, entry) for name in names if (entry := self.get(name)) is not None)
        return next(entries, None)

    def record(self, name: str, kind: type[_Kept]) -> _Kept | None:
        """Return the record of a name and a kind, or `None` if there is no trustworthy one."""
        path = self._path(name)
        if path is None:
            return None
        data = private.load(path, _KIND, wire.FRAME_LIMIT)
        if data is None:
            return None
        try:
            record = wire.decode(_expanded(data))
        except (zlib.error, wire.WireError) as error:
            log.warning("%s is ignored: %s", path, error)
            return None
        if not isinstance(record, kind):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return record

    def put(self, name: str, entry: Compiled | Folding | SlowCompile) -> None:
        """Store an entry; errors such as a full disk are logged."""
        path = self._path(name)
        if path is None or self.limit <= 0:
            return
        try:
            body = wire.encode(entry)[wire.HEADER.size :]
        except wire.WireError as error:
            log.warning("cannot store %s: %s", path, error)
            return
        if not private.store(path, _KIND, zlib.compress(body, 1)):
            return
        self._written += 1
        if self._written % _SWEEP == 1:
            self.sweep()

    def lock(self, name: str) -> Lock | None:
        """Lock an entry, or return `None` if another process has locked it.

        Entries share a few locks, so a process may wait for one that makes another entry.
        """
        if self.folder is None:
            return Lock()
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(private.lock_file(self.folder / f"{name[:2]}.lock"))
            except OSError as error:
                log.warning("cannot lock %s: %s", self.folder, error)
                return Lock()
            return Lock(os.dup(file)) if try_lock(file) else None

    def sweep(self) -> None:
        """Delete the least recently used entries past the limit, and files of killed processes."""
        for path in self._found(f"{private.UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > _UNFINISHED:
                    path.unlink()
        entries = []
        for path in self._found(f"*{_ENDING}"):
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
        for path in self._found(f"*{_ENDING}"):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _found(self, pattern: str) -> list[Path]:
        return [] if self.folder is None else reading.below(self.folder, f"*/{pattern}")

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / name[:2] / f"{name}{_ENDING}"


def _expanded(data: bytes) -> bytes:
    """Decompress data that is at most as large as a message.

    Raises:
        zlib.error: the data is larger, or corrupt.
    """
    machine = zlib.decompressobj()
    body = machine.decompress(data, wire.FRAME_LIMIT)
    if not machine.eof:
        raise zlib.error(f"incomplete, or larger than {wire.FRAME_LIMIT} bytes")
    return body
