"""Cache compiled programs on disk by content, so that another session need not compile them.

An entry's name is a digest of everything that its content depends on, so entries are never wrong,
only outdated.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from jaxsight.files import private
from jaxsight.files.cache_folder import CacheFolder
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.compiling import COMPILER_VERSION, Compiled, Folding

log = logging.getLogger(__name__)

_Kept = TypeVar("_Kept", Compiled, Folding)


def digest(*parts: str) -> str:
    """Return the name of an entry that depends on these parts."""
    return hashlib.sha256("\0".join((str(COMPILER_VERSION), *parts)).encode()).hexdigest()


class DiskCache(CacheFolder):
    """The compiled programs, and what was measured of them."""

    def __init__(self, folder: Path | None = None, limit: int = 512 * 1024 * 1024) -> None:
        """Use a folder, or the user's cache folder, up to `limit` bytes; 0 stores nothing."""
        top = folder or private.cache_folder("compiled")
        version = COMPILER_VERSION
        own = None if top is None else top / f"v{version}"
        super().__init__(own, f"compiled program {version}", ".compiled", limit)

    def get(self, name: str) -> Compiled | None:
        """Return the entry of a name, or `None` if there is no trustworthy one."""
        return self.record(name, Compiled)

    def first(self, names: Sequence[str]) -> tuple[str, Compiled] | None:
        """Return the first of some names that has a trustworthy entry, and the entry."""
        entries = ((name, entry) for name in names if (entry := self.get(name)) is not None)
        return next(entries, None)

    def record(self, name: str, kind: type[_Kept]) -> _Kept | None:
        """Return the record of a name and a kind, or `None` if there is no trustworthy one."""
        if (data := self.load(name, wire.FRAME_LIMIT)) is None:
            return None
        try:
            record = wire.decode(_expanded(data))
        except (zlib.error, wire.WireError) as error:
            log.warning("%s is ignored: %s", self.path(name), error)
            return None
        return record if isinstance(record, kind) else None

    def put(self, name: str, entry: Compiled | Folding) -> None:
        """Store an entry; errors such as a full disk are logged."""
        try:
            body = wire.encode(entry)[wire.HEADER.size :]
        except wire.WireError as error:
            log.warning("cannot store %s: %s", self.path(name), error)
            return
        self.store(name, zlib.compress(body, 1))


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
