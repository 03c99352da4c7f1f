"""Sizes that only missing data would tell: numbers that stand for them, and how these are written.

A dry run needs numbers to make arrays. Those of unknown sizes are such that nothing else has them,
so whatever follows from one is recognized by its number: `f32[?N,128]`, `2*?N`, `?N/8`. Each size
has several numbers, with other divisors: one is chosen that fits what a program divides it by.
"""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction

NAMES = "VUSRQPFEDKMN"
_DIVISORS = (
    2**10 * 3**2 * 5 * 7,
    2**5 * 3 * 5 * 7 * 11 * 13,
    2**6 * 3 * 5**3 * 13,
    2**8 * 3 * 5 * 7 * 17,
    2**5 * 3**2 * 5**2 * 7**2,
)
"""What programs divide sizes by without a rest, a choice: blocks, heads, patches, axes of a mesh.

The first one has most of them; the last of the others are 13, 125, 17 and 49.
"""
_PRIMES = iter([n for n in range(211, 578) if all(n % divisor for divisor in range(2, 25))])
_ROWS = [{name: divisors * next(_PRIMES) for name in NAMES} for divisors in _DIVISORS]
"""The numbers, 66 to 270 million: larger than most sizes; a product of two fits into 64 bits."""
_OF = {size: name for row in _ROWS for name, size in row.items()}

TRIED = tuple(20_160 * prime for prime in (11, 13, 17, 19, 23, 29))
"""Sizes that operations on unknown data are tried with, and three others, to see which sizes of a
result do not depend on them. They are smaller: a product of three fits into 64 bits."""

_LEAST = min(_OF) // 1024
"""The least number that is taken for a part of one, as about one of 1024 elements of a block; there
are smaller ones of other origin, as widths of layers are, that divide one of these."""
_LARGEST_DIVISOR, _LARGEST_FACTOR, _LARGEST_OFFSET = 1024, 64, 1024
"""Constants of formulas, a choice: of numbers of other origin one in a thousand has a formula."""
_LARGEST_ROUNDED = 256
"""The largest divisor with a rest: a quotient of this one is 1000 times as large."""
_NUMBER = re.compile(r"(?<![\w.])\d{5,}(?![\w.])")


@functools.lru_cache(4096)
def formula(number: int) -> str:
    """Return how a number follows from unknown sizes, such as `?N-1`; empty for other numbers."""
    if number < _LEAST:
        return ""
    for size, name in _OF.items():
        times, rest = divmod(number, size)
        if rest == 0:
            other = formula(times)
            return f"{other}*?{name}" if other else _times(f"?{name}", times)
        part = Fraction(number, size)
        if part.denominator <= _LARGEST_DIVISOR and _divides(part.denominator):
            return f"{_times(f'?{name}', part.numerator)}/{part.denominator}"
        near = round(part)
        offset = number - near * size
        if 0 < near <= _LARGEST_FACTOR and abs(offset) <= _LARGEST_OFFSET:
            return f"{_times(f'?{name}', near)}{offset:+}"
        divisor = size // number
        if 1 < divisor <= _LARGEST_ROUNDED and size % number < divisor:
            return f"?{name}//{divisor}"
        if number - size in _OF:
            return f"?{name}+?{_OF[number - size]}"
    return ""


def number(name: str, divisor: int = 1) -> int | None:
    """Return a number that stands for an unknown size, such as `?N`, and has a divisor."""
    numbers = (row[name.removeprefix("?")] for row in _ROWS if divisor <= _LARGEST_DIVISOR)
    return next((number for number in numbers if number % divisor == 0), None)


def factor(number: int, divisor: int) -> tuple[str, int]:
    """Return what a size has to be divided by without a rest, so that a number that follows is.

    Its name is empty if the number does not follow from one size alone.
    """
    for size, name in _OF.items():
        part = Fraction(number, size)
        if (
            formula(number)
            and part.denominator <= _LARGEST_DIVISOR
            and f"?{name}" in formula(number)
        ):
            needed = part.denominator * (divisor // math.gcd(divisor, part.numerator))
            return f"?{name}", needed
    return "", 1


def named(text: str) -> str:
    """Return a text with formulas in place of the numbers that follow from unknown sizes."""
    return _NUMBER.sub(lambda found: formula(int(found[0])) or found[0], text)


def _divides(divisor: int) -> bool:
    """Return whether a size was chosen for programs that divide by a number."""
    return any(divisors % divisor == 0 for divisors in _DIVISORS)


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{factor}*{name}"
