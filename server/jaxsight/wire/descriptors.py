"""The descriptors of a child process: the protocol keeps its own, away from the code it runs."""

from __future__ import annotations

import contextlib
import os
import sys

FIRST_PRIVATE_DESCRIPTOR = 200
"""High enough that programs that close "all" descriptors up to a small number do not close ours."""


def take_descriptors() -> tuple[int, int]:
    """Move the protocol away from descriptors 0 and 1, and redirect 1 to 2.

    Returns the descriptors to read from and to write to.
    """
    incoming, outgoing = private(0), private(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def private(descriptor: int) -> int:
    """Return a duplicate that child processes do not inherit."""
    if sys.platform == "win32":
        return os.dup(descriptor)
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR)
    except OSError:  # the limit of open files is lower
        return os.dup(descriptor)


def die_with_parent() -> None:
    """Have Linux kill this process when the server exits for any reason.

    On other systems, the closed pipe ends the process.
    """
    if sys.platform != "linux":
        return
    import ctypes
    import signal

    set_death_signal = 1  # PR_SET_PDEATHSIG
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL))
