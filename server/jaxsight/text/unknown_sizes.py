"""Sizes that only missing data would tell: numbers that stand for them, and how these are written.

A dry run needs numbers to make arrays. Those of unknown sizes are such that nothing else has them,
so whatever follows from one is recognized by its number: `f32[?N,128]`, `2*?N`, `?N/8`.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

_DIVISORS = 2**10 * 3**2 * 5 * 7
"""What programs divide sizes by without a rest, a choice: blocks, heads, patches, axes."""
_PRIMES = (211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271)
_NAMES = "VUSRQPFEDKMN"

SIZES = tuple(_DIVISORS * prime for prime in _PRIMES)
"""The numbers, about 70 million: larger than most sizes, and a product of two with a known size
fits into 64 bits.
"""

_LEAST = SIZES[0] // 1024
"""The least number that is taken for a part of one, as about one of 1024 elements of a block."""
_LARGEST_DIVISOR, _LARGEST_FACTOR, _LARGEST_OFFSET = 1024, 64, 1024
_LARGEST_ROUNDED = 256
"""The largest divisor with a rest: a quotient of this one is 1000 times as large."""
"""Constants of formulas, a choice: of numbers of other origin one in a thousand has a formula."""
_NUMBER = re.compile(r"(?<![\w.])\d{5,}(?![\w.])")


@functools.lru_cache(4096)
def formula(number: int) -> str:
    """Return how a number follows from unknown sizes, such as `?N-1`; empty for other numbers."""
    if number < _LEAST:
        return ""
    for name, size in zip(_NAMES, SIZES, strict=True):
        times, rest = divmod(number, size)
        if rest == 0:
            other = formula(times)
            return f"{other}*?{name}" if other else _times(f"?{name}", times)
        part = Fraction(number, size)
        if part.denominator <= _LARGEST_DIVISOR and _DIVISORS % part.denominator == 0:
            return f"{_times(f'?{name}', part.numerator)}/{part.denominator}"
        near = round(part)
        offset = number - near * size
        if 0 < near <= _LARGEST_FACTOR and abs(offset) <= _LARGEST_OFFSET:
            return f"{_times(f'?{name}', near)}{offset:+}"
        divisor = size // number
        if 1 < divisor <= _LARGEST_ROUNDED and size % number < divisor:
            return f"?{name}//{divisor}"
        if number - size in SIZES:
            return f"?{name}+?{_NAMES[SIZES.index(number - size)]}"
    return ""


def number(name: str) -> int:
    """Return the number that stands for an unknown size, such as `?N`."""
    return SIZES[_NAMES.index(name.removeprefix("?"))]


def named(text: str) -> str:
    """Return a text with formulas in place of the numbers that follow from unknown sizes."""
    return _NUMBER.sub(lambda found: formula(int(found[0])) or found[0], text)


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{factor}*{name}"
