"""Format amounts of memory and time in the same way everywhere, and parse amounts of memory.

This module uses only the standard library, as every process of jaxsight formats figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

KIB, MIB, GIB = 2**10, 2**20, 2**30

BYTES_PER_UNIT: dict[str, int] = {
    "": 1,
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGT", 1)},
}
"""The units that `parse_size` reads, in capitals."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

MEASURED = "⏱"
"""Marks times that were measured."""
SHORTEST = 5e-8
"""The shortest time in seconds that is shown as a figure: less rounds to `0.0 µs`."""


def size(count: float) -> str:
    """Return an amount of memory, such as `513 B`, `512 KiB` or `1.5 MiB`.

    A negative amount is unknown and becomes `?`.
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


def parse_size(text: str) -> float | None:
    """Return the bytes of an amount such as `4 MiB` or `512`, or `None` if it is invalid."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2].upper() not in BYTES_PER_UNIT:
        return None
    return float(match[1]) * BYTES_PER_UNIT[match[2].upper()]


def time(seconds: float) -> str:
    """Return a time with at most three digits, such as `3.6 µs`, `334 ms` or `2.00 s`."""
    if seconds < SHORTEST:
        return "< 0.1 µs"
    if seconds < 1e-3:
        return f"{_digits(seconds * 1e6, 1)} µs"
    return f"{_digits(seconds * 1e3, 2)} ms" if seconds < 1 else f"{_digits(seconds, 2)} s"


def about(seconds: float) -> str:
    """Return an estimated time: `≈ 3.6 µs`; `< 0.1 µs` for one that is too short for a figure."""
    return f"{'≈ ' if seconds >= SHORTEST else ''}{time(seconds)}"


def seconds(amount: float) -> str:
    """Return a time that was measured on a machine with other work: `< 0.1 s`, `6.1 s`, `64 s`."""
    if amount < 0.05:
        return "< 0.1 s"
    return f"{amount:.0f} s" if amount >= 9.95 else f"{amount:.1f} s"


def _digits(amount: float, decimals: int) -> str:
    """Return a number with at most `decimals` decimals, and none past its third digit."""
    before = len(f"{amount:.0f}")
    return f"{amount:.{max(0, min(decimals, 3 - before))}f}"


def percent(share: float) -> str:
    """Return a share, such as `38 %` or `0.4 %`."""
    return f"{share * 100:.0f} %" if share >= 0.0995 else f"{share * 100:.1f} %"


def interval(least: int, most: int | None, write: Callable[[int], str] = str) -> str:
    """Return `3`, `3–7`, or `≥ 3` without an upper end; ends that read alike are one figure."""
    if most is None:
        return f"≥ {write(least)}"
    ends = dict.fromkeys((write(least), write(most)))
    return "–".join(ends)


def some(texts: Sequence[str], most: int, last: str = ", ") -> str:
    """Return `a, b`, with `last` before the last text; of more, the first: `a, b and 3 more`."""
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return last.join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 function` or `12 functions`.

    Args:
        plural: by default the noun with an `s`.
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
