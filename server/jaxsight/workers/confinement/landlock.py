"""Landlock: the kernel refuses changes of files outside of some folders (Linux 5.13).

See https://docs.kernel.org/userspace-api/landlock.html for rights and versions (ABI). Reading is
not restricted.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # of all architectures
_VERSION = 1  # a flag of `_CREATE`
_PATH = 1  # the type of a rule

_WRITE, _REFER, _TRUNCATE, _IOCTL = 1 << 1, 1 << 13, 1 << 14, 1 << 15
_CHANGES = _WRITE | sum(1 << bit for bit in range(4, 13))
"""Writing, and removing and making of each kind of entry: what the first version guards."""
_OF_FILES = _WRITE | _TRUNCATE | _IOCTL
"""Rights that a rule about a file may give."""
_TCP, _SCOPES = 3, 3
"""Binding and connecting; abstract sockets, and signals to processes outside."""

NEEDS_TRUNCATE, NEEDS_TCP, NEEDS_IOCTL, NEEDS_SCOPES = 3, 4, 5, 6


def version(most: int) -> int:
    """Return the kernel's version of Landlock, but `most` at most; 0 if it has none."""
    found: int = _libc().syscall(_CREATE, None, 0, _VERSION)
    return min(max(found, 0), most)


def confine(abi: int, writable: Sequence[str], devices: Sequence[str] = ()) -> None:
    """Refuse all changes of files but below some folders, or of some files, for good.

    Args:
        abi: what `version` returned, at least 1.
        writable: folders and files; those that do not exist are left out.
        devices: files, and folders of such, that may be written but neither made nor removed.

    Raises:
        OSError: the kernel refuses.
    """
    handled = _CHANGES
    handled |= _REFER if abi >= 2 else 0
    handled |= _TRUNCATE if abi >= NEEDS_TRUNCATE else 0
    handled |= _IOCTL if abi >= NEEDS_IOCTL else 0
    # Only as long as the kernel's own structure of this version: it refuses unknown fields.
    attributes = struct.pack("=Q", handled)
    if abi >= NEEDS_TCP:
        attributes += struct.pack("=Q", _TCP)
    if abi >= NEEDS_SCOPES:
        attributes += struct.pack("=Q", _SCOPES)
    rules = _call(_CREATE, attributes, len(attributes), 0)
    for path in (*writable, *devices):
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        is_own = path not in devices and os.path.isdir(path)  # noqa: PTH112 - no pathlib
        rights = handled if is_own else handled & _OF_FILES
        _call(_ADD, rules, _PATH, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    _call(_RESTRICT, rules, 0)
    os.close(rules)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
