"""Read files that only the user can have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe must not block."""

BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class NotOurs(Exception):
    """The file or folder is not trusted; the message says why."""


def read_own(path: Path, *, most: int, forbidden: int, owners: tuple[int, ...] = ()) -> bytes:
    """Return the content of a regular file of this user.

    Args:
        path: the file.
        most: maximum size in bytes.
        forbidden: permissions that it must not have.
        owners: user ids of other allowed owners.

    Raises:
        FileNotFoundError: it does not exist.
        OSError: it cannot be read.
        NotOurs: it is not a regular file, it is too large, or others may have written it.
    """
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotOurs("it is not a regular file")
        check_own(status, forbidden, owners)
        data = file.read(most + 1)
    if len(data) > most:
        raise NotOurs(f"it is larger than {most:,} bytes")
    return data


def check_own(status: os.stat_result, forbidden: int, owners: tuple[int, ...] = ()) -> None:
    """Check that a file or folder belongs to this user and that others cannot write to it.

    Raises:
        NotOurs: it belongs to another user, or others can write to it.
    """
    if os.name == "nt":
        return  # user and mode have no meaning there; the profile's own permissions apply
    if status.st_uid not in (os.getuid(), *owners):
        raise NotOurs(f"it belongs to another user (id {status.st_uid})")
    if status.st_mode & forbidden:
        raise NotOurs("other users can write to it")


def is_own_folder(folder: str | Path) -> bool:
    """Return whether a folder belongs to this user and not everybody can write to it."""
    try:
        check_own(os.stat(folder), stat.S_IWOTH)  # noqa: PTH116 (any text may be passed)
    except (OSError, ValueError, NotOurs):
        return False
    return True


def is_everybodys(folder: str | Path) -> bool:
    """Return whether every user can write to a folder, as to the one for temporary files."""
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH) and os.name != "nt"  # noqa: PTH116
    except (OSError, ValueError):
        return False


WRITABLE = "JAXSIGHT_WRITABLE"
"""The variable that names what a confined process may write, as `PATH` names folders."""

KEPT = "JAXSIGHT_KEPT"
"""The variable that names a folder of those that lasts."""
