"""Write files that the user names, atomically, so that a full disk destroys nothing."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from jaxsight.cli.errors import CommandError


def write(path: Path, content: bytes) -> None:
    """Write a file, or to an existing pipe or device, keeping links and permissions.

    Raises:
        CommandError: it cannot be written; the old content is unchanged.
    """
    try:
        real = path.resolve()
        if real.exists() and not real.is_file():
            with real.open("wb") as there:
                there.write(content)
        else:
            _replace(real, content)
    except (OSError, RuntimeError) as error:  # of a loop of links, before Python 3.13
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"cannot write {path}: {reason}") from error


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{os.urandom(8).hex()}.jaxsight")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    now = os.umask(0o077)
    os.umask(now)
    return now
