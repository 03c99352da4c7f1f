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
    """Return a time: `3.6 µs`, `1.25 ms`, `2.00 s`."""
    if seconds < SHORTEST:
        return "< 0.1 µs"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
