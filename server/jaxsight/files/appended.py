"""A file of one process that only grows: a crash loses nothing.

It is opened for each piece, because a program may close any descriptor.

This module uses only the standard library.
"""

from __future__ import annotations

import os

from jaxsight.files import reading


class AppendedFile:
    """A file of this process in a folder, up to a size. A forked child begins one of its own."""

    def __init__(self, folder: str, ending: str, largest: int) -> None:
        """Begin with an empty file, which is created with the first piece.

        Args:
            folder: where it is.
            ending: how its name ends.
            largest: its maximum size, in bytes.
        """
        self._folder = folder
        self._ending = ending
        self._largest = largest
        self.begin()

    def begin(self) -> None:
        """Begin a new file with the next piece."""
        name = f"{os.getpid()}-{os.urandom(4).hex()}{self._ending}"
        self._path = os.path.join(self._folder, name)  # noqa: PTH118
        self._size = 0

    def append(self, data: bytes) -> bool:
        """Append a piece; return false if the file is full or cannot be written."""
        if self._size + len(data) > self._largest:
            return False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        flags |= reading.flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            return False
        self._size += len(data)
        return True
