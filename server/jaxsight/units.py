"""Amounts of memory and time as people read them: the same way everywhere.

Standard library only: every process of jaxsight shows figures.
"""

from __future__ import annotations

KIB, MIB, GIB = 2**10, 2**20, 2**30

SHORTEST = 5e-8
"""Seconds from which a time has a figure of its own."""


def size(count: float) -> str:
    """Return an amount of memory: `513 B`, `512 KiB`, `1.5 MiB`; `?` for a negative one, which
    nobody knows.
    """
    if count < 0:
        return "?"
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if round(amount, 1) < 1024:
            break
        amount, unit = amount / 1024, larger
    digits = f"{amount:.0f}" if unit == "B" else f"{amount:.1f}".removesuffix(".0")
    return f"{digits} {unit}"


def time(seconds: float) -> str:
    """Return a time with three digits at most: `3.6 µs`, `1.25 ms`, `334 ms`, `2.00 s`."""
    if seconds < SHORTEST:
        return "< 0.1 µs"
    if seconds < 1e-3:
        return f"{_digits(seconds * 1e6, 1)} µs"
    return f"{_digits(seconds * 1e3, 2)} ms" if seconds < 1 else f"{_digits(seconds, 2)} s"


def _digits(amount: float, decimals: int) -> str:
    """Return a number with so many decimals, fewer where it has digits before the point."""
    before = len(f"{amount:.0f}")
    return f"{amount:.{max(0, min(decimals, 3 - before))}f}"
