"""Numbers, known for several sizes, as expressions of these sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from jaxsight.sourcerizer.programs import dimensions
from jaxsight.sourcerizer.programs.dimensions import Sizes

_DIVISORS = range(2, 17)
"""Divisors of sizes in expressions. A choice: halves, heads, and groups of few."""


def fitted(values: Sequence[int], samples: Sequence[Sizes], known: Sequence[str]) -> str | None:
    """Return the shortest expression that has a value for each of the sizes; None without one.

    Args:
        values: one for each sample.
        samples: one for all names, one with each name's size changed, and one with all changed.
        known: expressions that the program has, to prefer.
    """
    fits = [
        _spelled(base, factor, summand)
        for base in _bases([*samples[0]], known)
        if (found := _line([dimensions.size(base, sizes) for sizes in samples], values))
        for factor, summand in [found]
    ]
    return min(fits, key=len, default=None) or _sum(values, samples)


def _bases(names: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    yield from names
    yield from known
    for count in (2, 3):
        for factors in itertools.combinations_with_replacement(names, count):
            yield " * ".join(factors)
    for base, divisor in itertools.product([*names, *known], _DIVISORS):
        yield f"({base}) // {divisor}" if not base.isidentifier() else f"{base} // {divisor}"
        yield f"({base} + {divisor - 1}) // {divisor}"
        yield f"({base}) % {divisor}" if not base.isidentifier() else f"{base} % {divisor}"
    for base, other in itertools.permutations(names, 2):
        yield f"{base} // {other}"


def _line(bases: Sequence[int], values: Sequence[int]) -> tuple[int, int] | None:
    """Return factor and summand for which values are a linear function of other ones."""
    first = bases[0]
    at = next((place for place, base in enumerate(bases) if base != first), None)
    if at is None:
        return None
    factor, remainder = divmod(values[at] - values[0], bases[at] - first)
    summand = values[0] - factor * first
    fits = all(factor * base + summand == value for base, value in zip(bases, values, strict=True))
    return (factor, summand) if not remainder and factor and fits else None


def _spelled(base: str, factor: int, summand: int) -> str:
    if factor != 1:
        inner = base if base.isidentifier() or set(base) <= set("*_ ") else f"({base})"
        if factor == -1 and summand:
            return f"{summand} - {inner}"
        base = f"{factor} * {inner}" if factor != -1 else f"-{inner}"
    if not summand:
        return base
    return f"{base} {'+' if summand > 0 else '-'} {abs(summand)}"


def _sum(values: Sequence[int], samples: Sequence[Sizes]) -> str | None:
    """Return a sum of multiples of several sizes."""
    first, factors = samples[0], dict[str, int]()
    for name, sizes, value in zip(first, samples[1:], values[1:], strict=False):
        factors[name], remainder = divmod(value - values[0], sizes[name] - first[name])
        if remainder:
            return None
    summand = values[0] - sum(factor * first[name] for name, factor in factors.items())
    terms = [(factor, name) for name, factor in factors.items() if factor]
    text = " + ".join(name if factor == 1 else f"{factor} * {name}" for factor, name in terms)
    text = _spelled(text.replace("+ -", "- "), 1, summand)
    if not terms or [dimensions.size(text, sizes) for sizes in samples] != [*values]:
        return None
    return text
