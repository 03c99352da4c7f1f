"""Shared memory of a process's own: `/dev/shm` is an empty file system that only it sees.

Shared memory and semaphores of POSIX are files there, also those of the user's other programs.
Only an administrator may mount: others get the system's folder, where they could change memory of
their own programs. A user namespace would let everybody mount, but in it all files of others belong
to nobody, which programs see.
"""

from __future__ import annotations

import ctypes

FOLDER = "/dev/shm"

_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_NO_SETUID, _NO_DEVICES = 2, 4


def separate() -> bool:
    """Mount it; return whether that worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(
        libc.unshare(_NEW_MOUNTS) == 0
        # Else what is mounted here would appear in the system's own tree, too.
        and libc.mount(None, b"/", None, _PRIVATE, None) == 0
        and libc.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", _NO_SETUID | _NO_DEVICES, b"mode=1777")
        == 0
    )
