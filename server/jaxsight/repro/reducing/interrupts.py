"""Turns Ctrl+C into an exception at places where nothing is lost.

Python raises `KeyboardInterrupt` anywhere; in hooks that run around a fork, it is ignored.
"""

from __future__ import annotations

import signal

_received: list[int] = []


def hold() -> None:
    """Keep interrupts until `check` is called."""
    signal.signal(signal.SIGINT, lambda number, frame: _received.append(number))


def check() -> None:
    """Raise `KeyboardInterrupt` if there was an interrupt since the last call."""
    if _received:
        _received.clear()
        raise KeyboardInterrupt
