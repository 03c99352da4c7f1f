"""Explain a dimension by named sizes: `D`, `3*D`, `L+1`, `B*L`, `D//H`.

A dimension was observed in several traces, each with other sizes. A formula explains it if it gives
the observed number in every trace. Small numbers coincide often, so a dimension has a formula only
if no other one of the grammar explains it too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Sample = Mapping[str, int]
"""The sizes of one trace by name."""

_LARGEST_FACTOR, _LARGEST_OFFSET, _DIVISORS = 64, 16, (2, 3, 4, 8, 16)
"""Constants of formulas, a choice: more explain dimensions that are related by chance, so that none
gets a name. `tools/size_names` measures both."""
_LEAST_QUOTIENT = 5
"""A quotient explains a dimension only if it is this in one trace: smaller ones often coincide."""
_MOST_NAMES = 8
"""Names from which products of three are not tried: there would be more than 56."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A size as an expression of names; `rank` orders formulas from simple to complex."""

    text: str
    value: Callable[[Sample], int] = field(compare=False)
    rank: int = field(compare=False)


def explanations(
    names: Sequence[str], samples: Sequence[Sample], dims: Sequence[int]
) -> list[Formula]:
    """Return all formulas that give the dimension in each sample, simple ones first.

    Args:
        names: the names that a formula may use.
        samples: the sizes of each trace.
        dims: the dimension in each trace; if all are equal, it does not depend on the sizes.
    """
    if len(set(dims)) == 1:
        return []
    formulas = [
        formula
        for formula in _candidates(names, samples, dims)
        if all(formula.value(s) == d for s, d in zip(samples, dims, strict=True))
    ]
    return sorted(formulas, key=lambda formula: formula.rank)


def _candidates(
    names: Sequence[str], samples: Sequence[Sample], dims: Sequence[int]
) -> Iterator[Formula]:
    """Yield formulas that may explain the dimension; their constants follow from one sample."""
    first, dim = samples[0], dims[0]
    terms = list(_terms(names))
    for term in terms:
        yield term
        size = term.value(first)
        if size > 0 and dim % size == 0 and 1 < dim // size <= _LARGEST_FACTOR:
            yield _multiple(term, dim // size)
        yield from _with_offset(term, dim - size)
        for factor in (2, 3, 4):
            yield from _with_offset(_multiple(term, factor), dim - factor * size)
        if term.rank == 0 and max(dims) >= _LEAST_QUOTIENT:
            for divisor in _DIVISORS:
                yield _floor(term, divisor)
                yield _ceil(term, divisor)
    if max(dims) >= _LEAST_QUOTIENT:
        for one, two in itertools.permutations(names, 2):
            yield from _quotients(one, two)


def _terms(names: Sequence[str]) -> Iterator[Formula]:
    """Yield names, products, sums and differences of names."""
    for name in names:
        yield Formula(name, lambda s, n=name: s[n], 0)  # type: ignore[misc]
    for one, two in itertools.combinations_with_replacement(names, 2):
        text = f"{one}**2" if one == two else f"{one}*{two}"
        yield Formula(text, lambda s, a=one, b=two: s[a] * s[b], 2)  # type: ignore[misc]
    for one, two in itertools.combinations(names, 2):
        yield Formula(f"{one}+{two}", lambda s, a=one, b=two: s[a] + s[b], 2)  # type: ignore[misc]
    for one, two in itertools.permutations(names, 2):
        yield Formula(f"{one}-{two}", lambda s, a=one, b=two: s[a] - s[b], 2)  # type: ignore[misc]
    for one, two in itertools.combinations(names, 2):
        yield Formula(f"min({one},{two})", lambda s, a=one, b=two: min(s[a], s[b]), 4)  # type: ignore[misc]
        yield Formula(f"max({one},{two})", lambda s, a=one, b=two: max(s[a], s[b]), 4)  # type: ignore[misc]
    if len(names) <= _MOST_NAMES:
        for some in itertools.combinations(names, 3):
            yield Formula("*".join(some), lambda s, n=some: s[n[0]] * s[n[1]] * s[n[2]], 4)  # type: ignore[misc]


def _multiple(term: Formula, factor: int) -> Formula:
    inner = f"({term.text})" if "+" in term.text or "-" in term.text else term.text
    return Formula(f"{factor}*{inner}", lambda s: factor * term.value(s), term.rank + 1)


def _with_offset(term: Formula, offset: int) -> Iterator[Formula]:
    if 0 < abs(offset) <= _LARGEST_OFFSET:
        sign = "+" if offset > 0 else "-"
        text = f"{term.text}{sign}{abs(offset)}"
        yield Formula(text, lambda s: term.value(s) + offset, term.rank + 2)


def _floor(term: Formula, divisor: int) -> Formula:
    return Formula(f"{term.text}//{divisor}", lambda s: term.value(s) // divisor, 2)


def _ceil(term: Formula, divisor: int) -> Formula:
    text = f"({term.text}+{divisor - 1})//{divisor}"
    return Formula(text, lambda s: -(-term.value(s) // divisor), 3)


def _quotients(one: str, two: str) -> Iterator[Formula]:
    """Yield `one` divided by `two`, rounded down and up."""

    def down(sample: Sample) -> int:
        return sample[one] // max(sample[two], 1)

    def up(sample: Sample) -> int:
        return -(-sample[one] // max(sample[two], 1))

    yield Formula(f"{one}//{two}", down, 3)
    yield Formula(f"({one}+{two}-1)//{two}", up, 5)
