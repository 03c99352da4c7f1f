"""Draws what a program is made of: dtypes, sizes and alternatives.

Sizes and chances, here and in templates, are choices that make programs small and varied; the tests
of coverage hold them. Others make other programs, and need another `spec.GENERATOR`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from jaxsight_dataset.spec import Spec

T = TypeVar("T")

FLOATS = ("float32", "float64", "bfloat16", "float16")
WIDE = ("float32", "float64")
INTEGERS = ("int32", "int64", "int16", "int8", "uint32", "uint8", "uint16")
COMPLEX = ("complex64", "complex128")
SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)


class Draws:
    """The choices of one program.

    Attributes:
        random: where all of them come from.
        spec: what the dataset contains.
    """

    def __init__(self, spec: Spec, source: random.Random) -> None:
        self.random = source
        self.spec = spec

    def choose(self, *options: T) -> T:
        """Return one of the options."""
        return self.pick(options)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of a sequence."""
        return options[int(self.random.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """Return whether something of this probability happens."""
        return self.random.random() < probability

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + int(self.random.random() * (high - low + 1))

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return some of the options, in any order."""
        return self.random.sample(list(options), count)

    def dtype(self, *options: str) -> str:
        """Return one of the dtypes, among those of the specification where possible."""
        return self.pick([each for each in options if each in self.spec.dtypes] or options[:1])

    def floating(self) -> str:
        """Return a dtype of real numbers, mostly `float32`."""
        if self.chance(0.45) and "float32" in self.spec.dtypes:
            return "float32"
        return self.dtype(*FLOATS)

    def size(self, low: int = 2, high: int = 64) -> int:
        """Return a size in [low, high]."""
        return self.pick([size for size in SIZES if low <= size <= high])

    def shape(self, low: int = 1, high: int = 3, largest: int = 64) -> tuple[int, ...]:
        """Return a shape whose rank is in [low, high]."""
        rank = self.between(min(low, self.spec.max_rank), min(high, self.spec.max_rank))
        limit = min(self.spec.max_elements, 16384)  # a program of five dimensions runs in a moment
        sizes: list[int] = []
        for left in range(rank, 0, -1):
            room = max(2, int((limit / math.prod(sizes)) ** (1 / left)) if left > 1 else largest)
            fair = max(2, min(largest, room * 2, limit // math.prod(sizes) // 2 ** (left - 1)))
            sizes.append(self.size(3, max(3, fair)))
        return tuple(sizes)
