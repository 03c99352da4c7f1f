"""Read files of unknown origin: a workspace may have anything under any name.

Only regular files up to a limit are read, and nothing here waits: a named pipe, a device, a socket,
a loop of links or a file of 3 GB named `pyproject.toml` is an error with a message.
`tools/lint/file_access.py` ensures that no other code in the package opens a file by its path.

This module uses only the standard library: tracers and compilers import it too.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import stat
import sys
import tokenize
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path, PurePosixPath, PureWindowsPath

from jaxsight.text import units

SMALL = 64 * 1024
"""Bytes of a `.python-version`, a marker or one of our own records, which have a few lines."""
SETTINGS = 256 * 1024
"""Bytes of a `pyproject.toml`, a choice: the tables of all tools take far less, and whoever reads
it waits for `tomllib`."""
SOURCE = 64 * 1024 * 1024
"""Bytes of a Python file, a baseline or a report, a choice: hardly one is that long, and more could
fill the memory of a small machine."""


def flags(*names: str) -> int:
    """Return those flags of `os.open` together that this system has."""
    return sum(getattr(os, name, 0) for name in names)


# Do not wait for a writer or a lock, acquire no terminal, and let no child inherit the descriptor.
_FLAGS = os.O_RDONLY | flags("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
_AT_ONCE = 1 << 20
"""Bytes of one `read`, a choice: most files need one, and of an endless one no more is kept."""

# Bound now: in a tracer, user code may replace these functions.
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
    """The file does not exist."""


def data(path: str | os.PathLike[str], limit: int = SOURCE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        UnreadableError: the path is not a regular file, the file is too large, or the system
            refuses access.
        MissingError: the file does not exist.
    """
    with _described(path, limit) as descriptor:
        # The size that the system reports may be wrong: the file may grow, or be generated in
        # `/proc`.
        parts: list[bytes] = []
        length = 0
        while part := _some(descriptor, min(_AT_ONCE, limit + 1 - length)):
            parts.append(part)
            length += len(part)
            if length > limit:
                raise _too_large(path, limit)
        return b"".join(parts)


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a regular file of any size, such as a table of a dataset, to read it in parts.

    Raises:
        UnreadableError, MissingError: as `data`, also while it is read.
    """
    with (
        _described(path, sys.maxsize) as descriptor,
        os.fdopen(descriptor, "rb", closefd=False) as file,
    ):
        yield file


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the real path of a file that another file in a folder names.

    Args:
        folder: where it must be.
        name: its path in the folder, with `/`.

    Raises:
        UnreadableError: it is absolute, or outside of the folder, also by a link.
    """
    parts = PurePosixPath(name)
    try:
        top = os.path.realpath(folder)
        real = os.path.realpath(os.path.join(top, *parts.parts))  # noqa: PTH118 - resolved at once
    except ValueError as error:  # a null byte in the path
        raise UnreadableError(name, str(error)) from error
    is_relative = not (parts.is_absolute() or ".." in parts.parts or "\\" in name)
    if not is_relative or not Path(real).is_relative_to(top) or PureWindowsPath(name).drive:
        raise UnreadableError(name, f"it is outside of {os.fspath(folder)}")
    return Path(real)


@contextlib.contextmanager
def _described(path: str | os.PathLike[str], limit: int) -> Iterator[int]:
    """Yield a descriptor of a regular file; turn errors of the system into ours."""
    try:
        # Check first: merely opening affects some devices and the writer of a pipe.
        _regular(path, os.stat(path), limit)  # noqa: PTH116 - not of a `Path`
        descriptor = _open(path, _FLAGS)
        try:
            _regular(path, _fstat(descriptor), limit)
            yield descriptor
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
    """Return the text of a Python file, decoded like Python does, line ends unchanged.

    Raises:
        UnreadableError: as `data`, or its encoding is unknown or its bytes are invalid.
    """
    content = data(path)
    try:
        return content.decode(encoding(content))
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UnreadableError(path, str(error)) from error


def encoding(content: bytes) -> str:
    """Return the encoding of Python source: from its byte order mark or its comment, else UTF-8.

    Raises:
        SyntaxError: the encoding is unknown, or contradicts the byte order mark.
    """
    name, _ = tokenize.detect_encoding(BytesIO(content).readline)
    if not getattr(codecs.lookup(name), "_is_text_encoding", True):
        raise SyntaxError(f"{name} is not a text encoding")
    return name


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a path exists; false without permission."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises without permission


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a regular file; false without permission."""
    return os.path.isfile(path)  # noqa: PTH113 - as above


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a folder; false without permission."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def below(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """Return the paths below a folder that match a pattern, sorted; empty without permission."""
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


def _too_large(path: str | os.PathLike[str], limit: int) -> UnreadableError:
    return UnreadableError(path, f"it is larger than {units.size(limit)}")


MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def is_marked(folder: Path) -> bool:
    """Return whether a folder is the root of a project."""
    return any(exists(folder / marker) for marker in MARKERS)
