"""Confine this process, and become another program: `launch.py ABI COMMAND…`.

The server's own Python runs this as a script (`-I -S`); the program then writes only what
`JAXSIGHT_WRITABLE` names, as `PATH` names folders. With a smaller ABI than the kernel's version of
Landlock, what an older kernel lacks is left out.
"""

from __future__ import annotations

import ctypes
import os
import sys

_DEVICES = ("null", "zero", "full", "random", "urandom", "kfd", "nvidia", "accel", "dri", "vfio")
"""Beginnings of names in `/dev`: what has no effect outside of a process, GPUs and TPUs."""

_PROFILE = """(version 1)
(allow default)
(deny file-write*)
(allow file-write* {} (regex #"^/dev/(null|zero|random|urandom|dtracehelper)$"))
(deny network*)
(deny signal)
(allow signal (target same-sandbox))
"""
"""Of macOS (`man sandbox-exec`), whose rules win over those before them."""

WRITABLE = "JAXSIGHT_WRITABLE"  # of `files/own_folders.py`
NEWEST = 1 << 16
"""More than any version of Landlock."""
_CANNOT_RUN = 127  # as shells report it
_NO_NEW_PRIVILEGES = 38  # of prctl

FOLDER = "/dev/shm"

_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_NO_SETUID, _NO_DEVICES = 2, 4


def confine(most: int) -> list[str]:
    """Confine this process, for good.

    Args:
        most: Landlock's newest version that is made use of.

    Returns:
        The beginning of a command that confines it: macOS has no call for that.

    Raises:
        OSError: the system refuses.
    """
    writable = [path for path in os.environ.get(WRITABLE, "").split(os.pathsep) if path]
    if sys.platform == "linux":
        _confine_on_linux(most, writable)
    return ["/usr/bin/sandbox-exec", "-p", _profile(writable)] if sys.platform == "darwin" else []


def main(arguments: list[str]) -> int:
    """Become the program; return an exit status if that is not possible."""
    most, *command = arguments
    try:
        command = [*confine(int(most)), *command]
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error}\n")
        return _CANNOT_RUN


def _confine_on_linux(most: int, writable: list[str]) -> None:
    from jaxsight.workers.confinement import landlock, seccomp

    abi = landlock.version(most)
    separate()
    # Landlock and seccomp refuse to confine a process that may gain privileges by what it starts,
    # unless an administrator asks.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    devices = [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(_DEVICES)]  # noqa: PTH208
    if abi:
        landlock.confine(abi, [*writable, FOLDER], devices)
    if seccomp.is_available():
        seccomp.confine(
            signals=abi < landlock.NEEDS_SCOPES,
            truncating=abi < landlock.NEEDS_TRUNCATE,
            terminals=abi < landlock.NEEDS_IOCTL,
        )


def _profile(writable: list[str]) -> str:
    folders = " ".join(
        '(subpath "{}")'.format(os.path.realpath(path).replace("\\", "\\\\").replace('"', '\\"'))
        for path in writable
    )
    return _PROFILE.format(folders)


def separate() -> bool:
    """Mount an empty `/dev/shm` that only this process sees; return whether that worked.

    Shared memory and semaphores of POSIX are files there, also those of the user's other programs.
    Only an administrator may mount: others get the system's folder, where they could change memory
    of their own programs. A user namespace would let everybody mount, but in it all files of others
    belong to nobody, which programs see.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(
        libc.unshare(_NEW_MOUNTS) == 0
        # Else what is mounted here would appear in the system's own tree, too.
        and libc.mount(None, b"/", None, _PRIVATE, None) == 0
        and libc.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", _NO_SETUID | _NO_DEVICES, b"mode=1777")
        == 0
    )


if __name__ == "__main__":
    # Last, so that nothing but the package itself is found there.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))  # noqa: PTH100, PTH118, PTH120
    sys.exit(main(sys.argv[1:]))
