"""The texts that modules are made of: the editor's where a file is open, else those on disk.

This is the one place that says which text a module has, in the server and in tracers, and how a
text is recognized later. A tracer reports the versions of all files that an answer was made of; the
server compares them with the versions that these files have now. So an answer is current if and
only if its texts are, whatever happened in between.

This module uses only the standard library, because tracers import it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from importlib.util import decode_source

from jaxsight.files import reading

Version = str
"""Identifies the content of a file: `MISSING`, the digest of a text, or a stamp of data."""

MISSING: Version = ""

_STAMP = "stat "
"""The beginning of a stamp: data are recognized by times, size and inode, as they may be large. The
time of the last change of any kind cannot be set, as `cp -p` sets the other one."""

_TICK = 100_000_000
"""Nanoseconds within which two changes may get the same time: Linux's clock of files moves by up to
10 ms (`CONFIG_HZ=100`), and some network file systems round.
"""

# Bound now: in a tracer, user code may replace these functions.
_stat, _real = os.stat, os.path.realpath


def version_of_text(text: str) -> Version:
    """Return the version of a text; line ends and a byte order mark do not matter."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _digest(plain.encode("utf-8", "surrogatepass"))


def stamp_of(path: str) -> Version:
    """Return the version of a file that is read as data; `MISSING` without one."""
    try:
        status = _stat(path)
    except (OSError, ValueError):
        return MISSING
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{_STAMP}{times} {status.st_size} {status.st_ino}"


class Texts:
    """Contents of files: the editor's text if a file is open, else that on disk."""

    def __init__(self) -> None:
        self.open: Mapping[str, str] = {}
        """The editor's texts by path. It is replaced, never changed, so it may be kept."""
        self._by_real: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._open_versions: dict[str, Version] = {}
        self._on_disk: dict[str, tuple[Version, Version]] = {}
        """By path: the stamp of a file, and the version of its text then."""

    def put(self, path: str, text: str | None) -> None:
        """Set the editor's text of a file, or remove it with `None`."""
        real, texts = self.real(path), dict(self.open)
        self._open_versions.pop(real, None)
        if text is not None:
            texts[path] = self._by_real[real] = text.removeprefix("\ufeff")
        elif texts.pop(path, None) is not None:
            del self._by_real[real]
            for other, standing in texts.items():  # the same file by another path
                if self.real(other) == real:
                    self._by_real[real] = standing
        self.open = texts

    def unsaved(self, path: str) -> str | None:
        """Return the editor's text of a file, if it is open."""
        return self._by_real.get(self.real(path)) if self._by_real else None

    def source(self, path: str) -> tuple[str | bytes, Version]:
        """Return what an import of the file executes, with its version.

        Raises:
            OSError: the file is not open, and cannot be read.
        """
        if (text := self.unsaved(path)) is not None:
            return text, self.version(path)
        data = reading.data(path)
        return data, _version_of_bytes(data)

    def current(self, path: str) -> str:
        """Return the text of a file that an import would get now; empty if there is none."""
        try:
            content, _ = self.source(path)
            return content if isinstance(content, str) else decode_source(content)
        except (OSError, SyntaxError, UnicodeDecodeError):
            return ""

    def version(self, path: str) -> Version:
        """Return the version of the text that an import would get now; `MISSING` without one."""
        if (text := self.unsaved(path)) is not None:
            real = self.real(path)
            if real not in self._open_versions:
                self._open_versions[real] = version_of_text(text)
            return self._open_versions[real]
        return self._version_on_disk(path)

    def _version_on_disk(self, path: str) -> Version:
        stamp = stamp_of(path)
        if stamp == MISSING:
            return MISSING
        cached = self._on_disk.get(path)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        try:
            version = _version_of_bytes(reading.data(path))
        except OSError:
            return MISSING
        if stamp == stamp_of(path) and _is_settled(path):
            self._on_disk[path] = stamp, version
        return version

    def is_current(self, path: str, version: Version) -> bool:
        """Return whether a file has a version, which is that of a text or of data."""
        if version.startswith(_STAMP):
            return stamp_of(path) == version
        if version == MISSING:  # also for the folder of a package
            return stamp_of(path) == MISSING and self.unsaved(path) is None
        return self.version(path) == version

    def are_current(self, versions: Mapping[str, Version]) -> bool:
        """Return whether all files have these versions."""
        return all(self.is_current(path, version) for path, version in versions.items())

    def differs_from_disk(self, path: str) -> bool:
        """Return whether a file is open, with another text than on disk."""
        return self.unsaved(path) is not None and self.version(path) != self._version_on_disk(path)

    def real(self, path: str) -> str:
        """Return the path without links, so that paths of editor and import system match."""
        real = self._real.get(path)
        if real is None:
            real = self._real[path] = _real(path)
        return real


def _is_settled(path: str) -> bool:
    """Return whether a file that changes from now on gets another stamp.

    One that changes twice within a tick of the file system's clock keeps it, as git's index knows
    ("racy git").
    """
    try:
        status = _stat(path)
        return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _TICK
    except OSError:
        return False


def _version_of_bytes(data: bytes) -> Version:
    # `decode_source` holds back a `\r` at the end, which may be half of a line end.
    plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return version_of_text(decode_source(plain))
    except (SyntaxError, UnicodeDecodeError):  # a wrong encoding; importing raises an error
        return _digest(data)


def _digest(data: bytes) -> Version:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
