"""Write files that the user names, atomically, so that a full disk destroys nothing."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from jaxsight.cli.errors import CommandError


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or to an existing pipe or device, keeping links and permissions.

    Raises:
        CommandError: it cannot be written; the old content is unchanged.
    """
    try:
        real = path.resolve()
        if real.exists() and not real.is_file():
            with real.open("wb") as file:
                file.write(content)
        else:
            _replace(real, content)
    except (OSError, RuntimeError) as error:  # of a loop of links, before Python 3.13
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"cannot write {path}: {reason}") from error


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{os.urandom(8).hex()}.jaxsight")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
