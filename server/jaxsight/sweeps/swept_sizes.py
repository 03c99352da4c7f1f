"""Which sizes are swept: `B=1..4096`, `L=128,256`, `n=8..64:8`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, int]
"""The value of each swept size."""

FEW = 16
"""Values of a range that are all compiled, a choice: a screen of a table, some seconds each. Of
more, each is about twice the one before."""
MOST = 64
"""Points of a sweep of one function, a choice: some minutes of compiling."""

_SWEPT = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<values>.*)", re.DOTALL)
_PART = re.compile(r"(?P<first>\d+)(?:\.\.(?P<last>\d+)(?::(?P<step>\d+))?)?")
LARGEST = 2**63 - 1
"""The largest dimension that XLA can represent: an `int64` (`xla/shape.h`)."""


class BadSizes(ValueError):
    """Sizes that cannot be swept; the message says why, and what to write."""


@dataclass(frozen=True, slots=True)
class SweptSize:
    """A size, the values that are compiled, and the distance of the values that it may have."""

    name: str
    values: tuple[int, ...]
    step: int = 1


def parse(text: str) -> SweptSize | None:
    """Return the size of `B=1..4096`; `None` if the text is no assignment to a name.

    Values are a number, a range with both ends (`1..4096`), a range with a step (`8..64:8`), or
    several of these with commas between them.

    Raises:
        BadSizes: the values are not valid.
    """
    match = _SWEPT.fullmatch(text)
    if match is None:
        return None
    name = match["name"]
    values: set[int] = set()
    step = 1
    for part in match["values"].split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise BadSizes(
                f"invalid sizes {text!r}; write {name}=1..4096, {name}=128,256 or {name}=8..64:8"
            )
        first, last = int(found["first"]), int(found["last"] or found["first"])
        step = int(found["step"] or step)
        if last < first or not step:
            raise BadSizes(f"invalid sizes {text!r}: {part.strip()} has no values")
        if last > LARGEST:
            raise BadSizes(f"invalid sizes {text!r}: the largest size is {LARGEST:,}")
        values |= {*thinned(range(first, last + 1, step))}
    return SweptSize(name, tuple(sorted(values)), step)


def given(name: str, values: int | Iterable[int]) -> SweptSize:
    """Return the size of Python values: a number, a `range`, a list, an array.

    Raises:
        BadSizes: there are none, or one is not a whole number that a size may be.
    """
    if isinstance(values, range) and values.step > 0 and len(values):
        return SweptSize(name, tuple(thinned(values)), values.step)
    numbers = [values] if isinstance(values, int) else [*values]
    try:
        whole = sorted({number.__index__() for number in numbers})
    except AttributeError:
        whole = []
    if not whole or not 0 <= whole[0] <= whole[-1] <= LARGEST:
        raise BadSizes(f"invalid sizes for {name}: {values!r}; give a range or a list of numbers")
    return SweptSize(name, tuple(whole))


def thinned(values: range) -> Iterator[int]:
    """Yield all of a few values; of many, the first, the last, and every time about the double."""
    if len(values) <= FEW:
        yield from values
        return
    at = 0
    while at < len(values) - 1:
        yield values[at]
        doubled = (2 * values[at] - values.start) // values.step
        at = max(at + 1, doubled)
    yield values[-1]


def combined(swept: Sequence[SweptSize]) -> list[dict[str, int]]:
    """Return the sizes of each point; those of the first size vary fastest.

    Raises:
        BadSizes: a size is named twice, or there are too many points.
    """
    names = [size.name for size in swept]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadSizes(f"{twice} is swept twice; write its values with commas: {twice}=1..8,64")
    number = math.prod(len(size.values) for size in swept)
    if number > MOST:
        raise BadSizes(f"a sweep of {number:,} points is too long; sweep at most {MOST}")
    others, first = swept[1:], swept[:1]
    return [
        {size.name: value for size, value in zip((*first, *others), (*own, *rest), strict=True)}
        for rest in itertools.product(*(size.values for size in others))
        for own in itertools.product(*(size.values for size in first))
    ]


def written(sizes: Sizes) -> str:
    """Return `B=4, L=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
