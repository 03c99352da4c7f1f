"""Tells whether code ran that may write nothing: it takes a byte out of a pipe."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from pathlib import Path

_BYTES = 1000


class Mark:
    """A named pipe with bytes; `statement` is Python, and `command` is for a shell."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.write(self._pipe, b"x" * _BYTES)
        self.statement = f"__import__('os').read(__import__('os').open({str(path)!r}, 0), 1)"
        self.command = f"head -c 1 '{path}' >/dev/null"

    @property
    def runs(self) -> int:
        """How often the code ran."""
        (left,) = struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0" * 4))
        return _BYTES - int(left)

    @property
    def has_run(self) -> bool:
        return self.runs > 0
