"""Record which files code reads while it runs, and whether they have changed since.

Python reports each file that it opens (`sys.addaudithook`), and a replacement of `os.stat` reports
its calls.
Recorded are regular files that the project's code may have read as data, and missing files that it
looked for.
Not recorded are sources and bytecode, installed files, virtual files (`/proc`), and files that the
code itself has written.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from jaxsight.files.texts import MISSING, Version, stamp_of
from jaxsight.tracer.isolation import code_origins

MOST = 256
"""Files that are recorded, and looked at for each request; changes of others go unnoticed."""

_KEPT_WRITTEN = 4096  # files; one that is forgotten counts as read
_SOURCES = (".py", ".pyc", ".pyi", ".so", ".pyd")
_NO_FILES = ("/proc/", "/dev/", "/sys/")
_PYTHON = tuple(f"{prefix}{os.sep}lib{os.sep}" for prefix in {sys.prefix, sys.base_prefix})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

# Bound now, as user code may replace them.
_stat, _real, _is_regular, _decode = os.stat, os.path.realpath, stat.S_ISREG, os.fsdecode


class Reads(dict[str, Version]):
    """Files by their real paths, with their versions when they were opened."""

    def unwritten(self) -> dict[str, Version]:
        """Return the files that code in this process has not written itself."""
        return {path: version for path, version in self.items() if path not in _written}

    def note(self, path: str, version: Version) -> None:
        """Add a file; the version at its first read counts."""
        if len(self) < MOST:
            self.setdefault(path, version)


_recording: list[Reads] = []
_written: dict[str, None] = {}
"""Files written by code in this process, in order."""


@contextlib.contextmanager
def recording(into: Reads) -> Iterator[None]:
    """Record reads of the code in the block; nested blocks record for all outer ones too."""
    _recording.append(into)
    try:
        yield
    finally:
        # By identity, as equal ones may be active at once.
        _recording[:] = [active for active in _recording if active is not into]


def missing(paths: Iterable[str]) -> None:
    """Record paths that were searched for, if they do not exist."""
    for path in paths:
        if _recording and stamp_of(path) == MISSING:
            for noted in _recording:
                noted.note(path, MISSING)


def watch() -> None:
    """Record opened files and calls of `os.stat` for the rest of the process."""
    sys.addaudithook(_audit)
    os.stat = _noting_stat


@functools.wraps(os.stat)
def _noting_stat(path: Any, *args: object, **kwargs: Any) -> os.stat_result:
    """Replace `os.stat`, which has no audit event: code may depend on the existence of a file."""
    try:
        return _stat(path, *args, **kwargs)
    finally:
        # Also after an error: that a file is missing counts as well.
        if _recording and isinstance(path, str | bytes | os.PathLike):
            with contextlib.suppress(Exception):
                if code_origins.called_by_user(
                    ("os", "posixpath", "ntpath", "genericpath", "pathlib")
                ):
                    _opened(os.fspath(path), None, 0)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _recording:
        # An error here would be raised in user code.
        with contextlib.suppress(Exception):
            _opened(*arguments)


def is_written(mode: object, flags: object) -> bool:
    """Return whether a file is opened for writing, by the arguments of the event `open`."""
    if isinstance(mode, str):
        return not {"w", "a", "x", "+"}.isdisjoint(mode)
    return isinstance(flags, int) and flags & _WRITES != 0


def _opened(name: object, mode: object, flags: object) -> None:
    if not isinstance(name, str | bytes):
        return  # a descriptor
    path = _real(_decode(name))
    if path.endswith(_SOURCES) or path.startswith((*_NO_FILES, *_PYTHON)):
        return
    if is_written(mode, flags):
        _written[path] = None
        if len(_written) > _KEPT_WRITTEN:
            del _written[next(iter(_written))]
        return
    if path in _written or code_origins.of_file(path) != code_origins.USER:
        return
    version = stamp_of(path)
    try:
        if version != MISSING and not _is_regular(_stat(path).st_mode):
            return
    except OSError:
        version = MISSING
    for noted in _recording:
        noted.note(path, version)
