"""Read files that somebody else made: a workspace may hold anything under any name.

Only regular files are read, never more than a limit, and nothing here waits: a named pipe, a
device, a socket, a loop of links or a file of 3 GB under the name `pyproject.toml` gives an error
in words. `tests/project/test_reading.py` holds that nothing else in the package opens a file by its
path.

The standard library alone: tracers and compilers import this too.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
import tokenize
from io import BytesIO
from pathlib import Path

from jaxsight import units

SMALL = 64 * 1024
"""Bytes of the largest `.python-version`, marker or record of ours."""
SETTINGS = 256 * 1024
"""Bytes of the largest `pyproject.toml`."""
SOURCE = 64 * 1024 * 1024
"""Bytes of the largest Python file, baseline or report."""

# Nothing waits for a writer or a lock, no terminal becomes ours, no child inherits the descriptor.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_AT_ONCE = 1 << 20

# Taken now: in a tracer user code may put something else in their place.
_open, _fstat, _some, _close = os.open, os.fstat, os.read, os.close
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})


class UnreadableError(OSError):
    """A file cannot be read. `reason` is the message without the path."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"cannot read {os.fspath(path)}: {reason}")
        self.reason = reason


class MissingError(UnreadableError):
    """There is no such file."""


def data(path: str | os.PathLike[str], limit: int = SOURCE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        UnreadableError: it is no regular file, too large, or the system refuses.
        MissingError: there is none.
    """
    try:
        # Looked at first: opening alone has effects on some devices and on who writes to a pipe.
        _regular(path, os.stat(path), limit)  # noqa: PTH116 - not of a `Path`
        descriptor = _open(path, _FLAGS)
        try:
            _regular(path, _fstat(descriptor), limit)
            return _read(path, descriptor, limit)
        finally:
            _close(descriptor)
    except UnreadableError:
        raise
    except OSError as error:
        kind = MissingError if error.errno in _MISSING else UnreadableError
        raise kind(path, error.strerror or str(error)) from error
    except ValueError as error:  # a null byte in the path
        raise UnreadableError(path, str(error)) from error


def text(path: str | os.PathLike[str], limit: int = SOURCE, *, strict: bool = True) -> str:
    """Return the content of a UTF-8 file, without a byte order mark.

    Args:
        strict: whether bytes that are not UTF-8 are an error; otherwise they are replaced.

    Raises:
        UnreadableError: as `data`, or it is not UTF-8.
    """
    content = data(path, limit)
    try:
        return content.decode("utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"line {line} is not UTF-8 (byte 0x{content[error.start]:02x})"
        raise UnreadableError(path, message) from error


def source(path: str | os.PathLike[str]) -> str:
    """Return the text of a Python file, decoded as Python would, line ends as they are.

    Raises:
        UnreadableError: as `data`, or its encoding is unknown or not kept.
    """
    content = data(path)
    try:
        return content.decode(encoding(content))
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UnreadableError(path, str(error)) from error


def encoding(content: bytes) -> str:
    """Return the encoding of Python source: of its mark or its cookie, else UTF-8.

    Raises:
        SyntaxError: the encoding is unknown, or contradicts the mark.
    """
    name, _ = tokenize.detect_encoding(BytesIO(content).readline)
    if not getattr(codecs.lookup(name), "_is_text_encoding", True):
        raise SyntaxError(f"{name} is no encoding of text")
    return name


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is anything under a name; false where one may not look."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises where one may not look


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a regular file; false where one may not look."""
    return os.path.isfile(path)  # noqa: PTH113 - as above


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a folder; false where one may not look."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def below(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """Return what matches a pattern below a folder, sorted; nothing where one may not look."""
    try:
        return sorted(Path(folder).glob(pattern))
    except (OSError, ValueError, NotImplementedError):
        return []


def _regular(path: str | os.PathLike[str], status: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
        raise UnreadableError(path, f"it is {kind}, expected a file")
    if status.st_size > limit:
        raise _too_large(path, limit)


def _read(path: str | os.PathLike[str], descriptor: int, limit: int) -> bytes:
    """Read to the end.

    The size that the system told may be wrong: the file grows, or `/proc` made it.
    """
    parts: list[bytes] = []
    length = 0
    while part := _some(descriptor, min(_AT_ONCE, limit + 1 - length)):
        parts.append(part)
        length += len(part)
        if length > limit:
            raise _too_large(path, limit)
    return b"".join(parts)


def _too_large(path: str | os.PathLike[str], limit: int) -> UnreadableError:
    return UnreadableError(path, f"it is larger than {units.size(limit)}")
