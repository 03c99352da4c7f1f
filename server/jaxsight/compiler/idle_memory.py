"""Give memory back to the system while a compiler is idle.

XLA and LLVM free what a compile used, 110 MiB for a transformer, but glibc keeps it: only
`malloc_trim` returns free pages from inside the heap.
It takes up to 20 ms, and the next compile takes longer, as it has to fault the pages in again
(8 ms for a small function): it is done only after a pause, and only if memory has grown.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

IDLE = 10.0
"""Seconds after the last message: compiles between edits are not slowed down."""

GROWTH = 32 * 2**20
"""Bytes by which resident memory must exceed that after the previous release, a choice: less pays
the costs above for little, more keeps what small programs used."""


class IdleMemory:
    """The memory of a process that is idle from time to time."""

    def __init__(self) -> None:
        """Release nothing yet; nothing ever if this process has another C library than glibc."""
        is_linux = sys.platform == "linux"
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if is_linux else None
        self._after = 0

    def release(self) -> None:
        """Release free memory, if memory has grown since the previous release."""
        if self._trim is not None and _resident() > self._after + GROWTH:
            self._trim(0)
            self._after = _resident()


def _resident() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024
