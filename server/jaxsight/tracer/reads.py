"""Which files code reads while it runs, and whether they are still what they were.

Python tells of each file that it opens (`sys.addaudithook`), and we ask it to tell of `os.stat`.
Noted are regular files that code of the project may have read as data, and files that were looked
for and were not there. Left out are sources and bytecode, what is installed, what only looks like a
file (`/proc`), and what the code has written itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from jaxsight.tracer import origins

Version = tuple[int, int, int] | None
"""Time of the last change in ns, size in bytes, inode; `None` for a file that is not there."""

MOST = 256
"""Files noted at once."""

_KEPT_WRITTEN = 4096
_SOURCES = (".py", ".pyc", ".pyi", ".so", ".pyd")
_NO_FILES = ("/proc/", "/dev/", "/sys/")
_PYTHON = tuple(f"{prefix}{os.sep}lib{os.sep}" for prefix in {sys.prefix, sys.base_prefix})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

# Taken now, since user code may put something else in their place.
_stat, _real, _is_regular, _decode = os.stat, os.path.realpath, stat.S_ISREG, os.fsdecode


class Reads(dict[str, Version]):
    """Files by their real paths, as they were when they were opened."""

    def current(self) -> bool:
        """Whether all of them are as they were."""
        return all(path in _written or version_of(path) == self[path] for path in self)

    def note(self, path: str, version: Version) -> None:
        """Add a file. What it was when it was first read counts."""
        if len(self) < MOST:
            self.setdefault(path, version)


_recording: list[Reads] = []
_written: dict[str, None] = {}
"""By code that ran here, the first ones first."""


@contextlib.contextmanager
def recording(into: Reads | None = None) -> Iterator[Reads]:
    """While code runs whose reads are to be noted. One within another notes for both."""
    noted = Reads() if into is None else into
    _recording.append(noted)
    try:
        yield noted
    finally:
        # By identity: equal ones may be active at once.
        _recording[:] = [each for each in _recording if each is not noted]


def missing(paths: Iterable[str]) -> None:
    """These were looked for."""
    for path in paths:
        if _recording and version_of(path) is None:
            for noted in _recording:
                noted.note(path, None)


def version_of(path: str) -> Version:
    """Return what names a file's content as it is now."""
    try:
        status = _stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def watch() -> None:
    """Notice files that are opened, or asked about, from now on, for as long as the process
    lasts.
    """
    sys.addaudithook(_audit)
    os.stat = _noting_stat


@functools.wraps(os.stat)
def _noting_stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
    """Stands in for `os.stat`, of which Python does not tell: whether a file exists may decide what
    code does.
    """
    try:
        return _stat(path, *args, **kwargs)
    finally:
        if _recording and isinstance(path, str | bytes | os.PathLike):
            with contextlib.suppress(Exception):
                if origins.asked_by_user(("os", "posixpath", "ntpath", "genericpath", "pathlib")):
                    _opened(os.fspath(path), None, 0)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _recording:
        # What is raised here would be raised in user code.
        with contextlib.suppress(Exception):
            _opened(*arguments)


def _opened(name: object, mode: object, flags: object) -> None:
    if not isinstance(name, str | bytes):
        return  # a descriptor
    path = _real(_decode(name))
    if path.endswith(_SOURCES) or path.startswith((*_NO_FILES, *_PYTHON)):
        return
    if isinstance(mode, str):
        writes = not {"w", "a", "x", "+"}.isdisjoint(mode)
    else:
        writes = isinstance(flags, int) and flags & _WRITES != 0
    if writes:
        _written[path] = None
        if len(_written) > _KEPT_WRITTEN:
            del _written[next(iter(_written))]
        return
    if path in _written or origins.of_file(path) != origins.USER:
        return
    try:
        status = _stat(path)
        version: Version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if not _is_regular(status.st_mode):
            return
    except OSError:
        version = None
    for noted in _recording:
        noted.note(path, version)
