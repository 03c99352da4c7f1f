"""Keep files of our own: caches and state, for the user alone.

Folders are made 0700 and files 0600. What is found is believed only if nobody else could have
written it: the file and every folder above it belong to the user or to root, and no one else may
write there (a folder with the sticky bit, as the common temporary one, may be above). A file begins
with a digest of what it is, how it is called and what it holds. Whatever is wrong is logged in a
line, and as good as not there; nothing here raises because of what is on disk, or of a disk that is
full or not ours.

On Windows a user's profile is closed to others by its access list, and permissions are not looked
at.

The standard library alone, but for `platformdirs`, which is asked late: tracers and compilers
import this too.
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

from jaxsight import reading

log = logging.getLogger(__name__)

UNFINISHED = ".unfinished-"
"""What the names of files begin with that are being written."""

_OWNERS = hasattr(os, "geteuid")
_MARK = b"jaxsight "
_DIGEST = hashlib.sha256().digest_size * 2


class _UnsafeError(OSError):
    """A folder or a file that others may have written."""


def cache_folder(*parts: str) -> Path | None:
    """Return a place in the user's cache folder; nothing where there is none. It is not made."""
    return _folder("user_cache_dir", parts)


def state_folder(*parts: str) -> Path | None:
    """Return a place in the user's folder of state; nothing where there is none. It is not made."""
    return _folder("user_state_dir", parts)


def _folder(kind: str, parts: tuple[str, ...]) -> Path | None:
    import platformdirs

    folder = Path(getattr(platformdirs, kind)("jaxsight"))
    # Of a user without a home folder it is `~/.cache/jaxsight`, below the working folder.
    return folder.joinpath(*parts) if folder.is_absolute() else None


def belongs_to_us(path: str | os.PathLike[str]) -> bool:
    """Return whether nobody but the user and root could have made or changed what is at a path."""
    try:
        _check(Path(path))
    except (OSError, ValueError):
        return False
    return True


def load(path: Path, kind: str, limit: int) -> bytes | None:
    """Return what `store` kept under a path, if nobody else can have changed it.

    Args:
        kind: what the file is, with the version of its format; a file of another kind is not read.
        limit: bytes of the largest content.
    """
    head = _head(kind)
    try:
        if path.is_symlink():
            raise reading.UnreadableError(path, "it is a link, expected a file")
        _check(path)
        content = reading.data(path, len(head) + _DIGEST + 1 + limit)
    except (FileNotFoundError, NotADirectoryError, reading.MissingError):
        return None
    except OSError as error:
        _ignored(path, error)
        return None
    body = content[len(head) + _DIGEST + 1 :]
    if not content.startswith(head):
        log.warning("%s is ignored: it is no file of the kind %r", path, kind)
        return None
    if content[len(head) : len(head) + _DIGEST + 1] != _digest(path, kind, body) + b"\n":
        log.warning("%s is ignored: its digest is wrong", path)
        return None
    return body


def store(path: Path, kind: str, payload: bytes, mode: int = 0o600) -> bool:
    """Keep something under a path, whole or not at all; whether it is kept.

    What was there is replaced, whoever made it; a link is replaced, not followed.
    """
    try:
        _secure(path.parent)
        _replace(path, _head(kind) + _digest(path, kind, payload) + b"\n" + payload, mode)
    except OSError as error:
        log.warning("%s cannot be kept: %s", path, _reason(error))
        return False
    return True


def write(path: Path, content: bytes, *, executable: bool = False) -> None:
    """Put a file without a digest into a folder of ours, whole or not at all.

    Raises:
        OSError: the folder is not ours alone, or the file cannot be written.
    """
    _secure(path.parent)
    _replace(path, content, 0o700 if executable else 0o600)


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """Open a file to lock, in a folder of ours, and give its descriptor; it is made where it is
    missing.

    Raises:
        OSError: the folder is not ours alone, or there is something else under the name.
    """
    _secure(path.parent)
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise reading.UnreadableError(path, "it is no file")
        yield descriptor
    finally:
        os.close(descriptor)


def _check(path: Path) -> None:
    """Check that nobody but the user and root can write a path, or any folder above it that leads
    there.

    Raises:
        OSError: somebody can, or it is not there.
    """
    real = Path(os.path.realpath(path, strict=True))
    if not _OWNERS:
        return
    for each in (path.absolute(), *path.absolute().parents):
        status = each.lstat()
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in (0, os.geteuid()):
            raise _UnsafeError(f"the link {each} belongs to the user {status.st_uid}")
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
    """Return whether a group is the user's own, as many systems make one for each user.

    Their umask lets the group write, so folders such as `~/.cache` are open to it.
    """
    import grp
    import pwd

    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _secure(folder: Path) -> None:
    """Make a folder where it is missing, each that is made for the user alone; close ours to
    others.

    Raises:
        OSError: it cannot be made, or others may have written in it.
    """
    for each in reversed((folder, *folder.parents)):
        if not reading.is_folder(each):
            with contextlib.suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)
    if not reading.is_folder(folder):
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
    if not _OWNERS:
        return
    _check(folder)
    tops = [top for top in (cache_folder(), state_folder()) if top is not None]
    for each in (folder, *folder.parents):
        if any(each.is_relative_to(top) for top in tops):
            status = each.stat()
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and status.st_uid == os.geteuid():
                each.chmod(0o700)


def _replace(path: Path, content: bytes, mode: int) -> None:
    beside = path.with_name(f"{UNFINISHED}{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(beside, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.chmod(mode)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()  # an empty one that is in the way; a full one stays, and is an error
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _head(kind: str) -> bytes:
    return _MARK + kind.encode() + b"\n"


def _digest(path: Path, kind: str, payload: bytes) -> bytes:
    """A digest of all, the name included: two files cannot be exchanged."""
    sum = hashlib.sha256(f"{kind}\0{path.name}\0".encode(errors="surrogatepass"))
    sum.update(payload)
    return sum.hexdigest().encode()


def _ignored(path: Path, error: OSError) -> None:
    if isinstance(error, _UnsafeError):
        _told_once(f"what is kept at {path.parent} is ignored: {error}")
    else:
        log.warning("%s is ignored: %s", path, _reason(error))


@lru_cache(maxsize=64)
def _told_once(message: str) -> None:
    """Log a warning; of a folder that is not used for every file in it, once."""
    log.warning("%s", message)


def _reason(error: OSError) -> str:
    if isinstance(error, reading.UnreadableError):
        return error.reason
    return error.strerror or str(error)
