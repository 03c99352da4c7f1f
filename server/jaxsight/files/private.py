"""Store our own files, caches and state, for the user alone.

Folders are created with mode 0700 and files with 0600.
A file is used only if nobody else could have written it: the file and every folder above it belong
to the user or to root, and nobody else may write there (a folder with the sticky bit, such as the
system's temporary one, may be above).
A file begins with a digest of its kind, its name and its content.
Anything invalid is logged in one line and treated as missing; no function here raises because of
the content of the disk, or of a disk that is full or read-only.

On Windows, a user's profile is closed to others by its access control list, and permissions are not
checked.

This module uses only the standard library and `platformdirs`, which is imported late and may be
missing: tracers and compilers import this module too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import stat
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from jaxsight.files import reading

log = logging.getLogger(__name__)

UNFINISHED = ".unfinished-"
"""Prefix of the names of files that are being written."""

_OWNERS = hasattr(os, "geteuid")
_MARK = b"jaxsight "
_DIGEST = hashlib.sha256().digest_size * 2


class _UnsafeError(OSError):
    """Others may have written a folder or a file."""


def cache_folder(*parts: str) -> Path | None:
    """Return a path in the user's cache folder, or `None` if there is none; it is not created."""
    return own_folder("user_cache_dir", *parts)


def own_folder(
    kind: Literal["user_cache_dir", "user_config_dir", "user_state_dir"], *parts: str
) -> Path | None:
    """Return a path in one of the user's folders, by the name that `platformdirs` has for it.

    Returns `None` if there is none. It is not created.
    """
    try:
        import platformdirs
    except ModuleNotFoundError:
        return None  # in the user's Python, which has only its own packages

    try:
        folder = Path(getattr(platformdirs, kind)("jaxsight", appauthor=False))
    except RuntimeError:  # raised by newer versions without a home folder; older ones leave the `~`
        return None
    return folder.joinpath(*parts) if folder.is_absolute() else None


def belongs_to_us(path: str | os.PathLike[str]) -> bool:
    """Return whether only the user and root can have created or changed the file at a path."""
    try:
        _check(Path(path))
    except (OSError, ValueError):
        return False
    return True


def load(path: Path, label: str, limit: int) -> bytes | None:
    """Return the content that `store` wrote to a path, if nobody else can have changed it.

    Args:
        label: the kind of the file and the version of its format; a file with another label is not
            read.
        limit: limit of the content in bytes.
    """
    head = _head(label)
    try:
        if path.is_symlink():
            raise reading.UnreadableError(path, "it is a link, expected a file")
        _check(path)
        content = reading.data(path, len(head) + _DIGEST + 1 + limit)
    except (FileNotFoundError, NotADirectoryError, reading.MissingError):
        return None
    except OSError as error:
        if isinstance(error, _UnsafeError):
            _warn_once(f"files in {path.parent} are ignored: {error}")
        else:
            log.warning("%s is ignored: %s", path, _reason(error))
        return None
    body = content[len(head) + _DIGEST + 1 :]
    if not content.startswith(head):
        log.warning("%s is ignored: not a file of the kind %r", path, label)
        return None
    if content[len(head) : len(head) + _DIGEST + 1] != _digest(path, label, body) + b"\n":
        log.warning("%s is ignored: wrong digest", path)
        return None
    return body


def store(path: Path, label: str, payload: bytes, mode: int = 0o600) -> bool:
    """Write content to a path atomically, and return whether this succeeded.

    Any existing file is replaced; a link is replaced, not followed.
    """
    try:
        secure(path.parent)
        replace(path, _head(label) + _digest(path, label, payload) + b"\n" + payload, mode)
    except OSError as error:
        log.warning("cannot store %s: %s", path, _reason(error))
        return False
    return True


def write(path: Path, content: bytes) -> None:
    """Write a file without a digest to one of our folders, atomically.

    Raises:
        OSError: others may write in the folder, or the file cannot be written.
    """
    secure(path.parent)
    replace(path, content, 0o600)


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """Open a file for locking in one of our folders, and yield its descriptor.

    A missing file is created.

    Raises:
        OSError: others may write in the folder, or the path is not a regular file.
    """
    secure(path.parent)
    extra = reading.flags("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | extra, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise reading.UnreadableError(path, "it is not a file")
        yield descriptor
    finally:
        os.close(descriptor)


def _check(path: Path) -> None:
    """Check that only the user and root can write a path and the folders above it.

    Raises:
        OSError: others can write, or the path does not exist.
    """
    real = Path(os.path.realpath(path, strict=True))
    if not _OWNERS:
        return
    for above in (path.absolute(), *path.absolute().parents):
        status = above.lstat()
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in (0, os.geteuid()):
            raise _UnsafeError(f"the link {above} belongs to the user {status.st_uid}")
    _owned(real, real.stat(), sticky=False)
    for folder in real.parents:
        _owned(folder, folder.stat(), sticky=True)


def _owned(path: Path, status: os.stat_result, *, sticky: bool) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise _UnsafeError(f"{path} belongs to the user {status.st_uid}")
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writable == stat.S_IWGRP and _of_user_alone(status.st_gid):
        return
    if writable and not (sticky and status.st_mode & stat.S_ISVTX):
        mode = status.st_mode & 0o7777
        raise _UnsafeError(f"{path} can be written by others (mode {mode:04o})")


@cache
def _of_user_alone(group: int) -> bool:
    """Return whether a group is the user's own, as many systems create one per user.

    Their umask lets the group write, so folders such as `~/.cache` are writable for it.
    """
    import grp
    import pwd

    try:
        entry, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def secure(folder: Path) -> None:
    """Create missing folders for the user alone, and remove the permissions of others.

    Raises:
        OSError: a folder cannot be created, or others may have written in it.
    """
    for above in reversed((folder, *folder.parents)):
        if not reading.is_folder(above):
            with contextlib.suppress(FileExistsError):  # another process was faster
                above.mkdir(mode=0o700)
    if not reading.is_folder(folder):
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder")
    if not _OWNERS:
        return
    _check(folder)
    both = own_folder("user_cache_dir"), own_folder("user_state_dir")
    tops = [top for top in both if top is not None]
    for above in (folder, *folder.parents):
        if any(above.is_relative_to(top) for top in tops):
            status = above.stat()
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and status.st_uid == os.geteuid():
                above.chmod(0o700)


def replace(path: Path, content: bytes, mode: int = 0o600, *, sync: bool = False) -> None:
    """Write a file beside a path and move it there; `sync` waits until it is on the disk.

    Raises:
        OSError: the file cannot be written.
    """
    beside = path.with_name(f"{UNFINISHED}{os.urandom(8).hex()}")
    extra = reading.flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | extra, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(descriptor)
        if mode != 0o600:  # which it has; confined processes may not change modes
            beside.chmod(mode)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()  # removes an empty folder; a non-empty one is an error
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _head(label: str) -> bytes:
    return _MARK + label.encode() + b"\n"


def _digest(path: Path, label: str, payload: bytes) -> bytes:
    """Return a digest of label, name and content, so that files cannot be swapped."""
    sum = hashlib.sha256(f"{label}\0{path.name}\0".encode(errors="surrogatepass"))
    sum.update(payload)
    return sum.hexdigest().encode()


@lru_cache(maxsize=64)  # folders; of more, a warning may come twice
def _warn_once(message: str) -> None:
    """Log a warning once, as an unsafe folder concerns every file in it."""
    log.warning("%s", message)


def _reason(error: OSError) -> str:
    if isinstance(error, reading.UnreadableError):
        return error.reason
    return error.strerror or str(error)
