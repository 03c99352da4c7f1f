"""Choose other sizes for a function: different for each name, but related like the given ones.

Sizes may have to be related for a function to trace: `D` divisible by `H`, `D == H*K`, a multiple
of 16. The given sizes show which relations may be needed. The first samples have none of them, so
that each name has a size of its own; if the function does not trace with them, more are kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_KEPT_FACTOR = 128
"""The largest power of two that a size is kept a multiple of: TPUs have tiles of 128 lanes."""
_KEPT_ODD = 9  # the largest odd factor likewise, as in `3*D` of `q, k, v`
_LARGE = 256
"""Sizes above may become smaller, as arrays of any size might be computed while tracing."""
_SMALL = 64
"""Sizes up to this keep their order, as in `k <= n`: a choice, it rarely matters between others."""
_FACTORS = (1, 2, 3, 5)
"""Factors of sizes that are multiples of other ones."""
_MOST_PRODUCTS = 3  # products that are kept in turn, a choice: each takes a trace
_SKIPPED = 5
"""Number of primes among which seeds choose: a prime, so that each seed has its own."""


@dataclass(frozen=True, slots=True)
class Multiple:
    """The size is a multiple of a number."""

    name: str
    number: int

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes have the relation."""
        return sizes[self.name] % self.number == 0


@dataclass(frozen=True, slots=True)
class Divides:
    """One size divides the other."""

    divisor: str
    name: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes have the relation."""
        return sizes[self.name] % sizes[self.divisor] == 0


@dataclass(frozen=True, slots=True)
class SizeProduct:
    """A size is the product of two others."""

    name: str
    one: str
    two: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes have the relation."""
        return sizes[self.name] == sizes[self.one] * sizes[self.two]


@dataclass(frozen=True, slots=True)
class Equal:
    """Two sizes are equal."""

    name: str
    other: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes have the relation."""
        return sizes[self.name] == sizes[self.other]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A size is not larger than another one."""

    name: str
    other: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes have the relation."""
        return sizes[self.name] <= sizes[self.other]


Relation = Multiple | Divides | SizeProduct | Equal | Ordered


def orders(sizes: Mapping[str, int]) -> tuple[Ordered, ...]:
    """Return the order of the given sizes."""
    return tuple(Ordered(a, b) for a, b in itertools.combinations(_ascending(sizes), 2))


def levels(sizes: Mapping[str, int]) -> list[tuple[Relation, ...]]:
    """Return sets of relations that the given sizes have, from their order alone to all of them."""
    names = _ascending(sizes)
    pairs = list(itertools.combinations(names, 2))
    order: tuple[Relation, ...] = orders(sizes)
    multiples = [Multiple(name, likely_divisor(sizes[name])) for name in names]
    divides = [
        Divides(a, b) for a, b in pairs if 1 < sizes[a] < sizes[b] and sizes[b] % sizes[a] == 0
    ]
    equal = [Equal(a, b) for a, b in pairs if sizes[a] == sizes[b]]
    products = [
        SizeProduct(name, a, b)
        for name in reversed(names)
        for a, b in pairs
        if min(sizes[a], sizes[b]) > 1 and sizes[a] * sizes[b] == sizes[name]
    ]
    kept = (*order, *(multiple for multiple in multiples if multiple.number > 1))
    made: list[tuple[Relation, ...]] = [order, kept]
    made += [(*kept, product) for product in products[:_MOST_PRODUCTS]]
    made += [(*kept, *divides), (*kept, *equal)]
    made += [(*kept, product, *divides, *equal) for product in products[:_MOST_PRODUCTS]]
    made.append((*kept, *divides, *equal))
    return list(dict.fromkeys(made))


def weakened(relation: Relation) -> Iterator[tuple[Relation, tuple[Relation, ...]]]:
    """Yield weaker and weaker forms of a relation, each with what it still implies."""
    match relation:
        case Multiple(name, number):
            while number > 1:
                prime = next(n for n in range(2, number + 1) if number % n == 0)
                weaker = (Multiple(name, number // prime),) if number > prime else ()
                yield Multiple(name, number), weaker
                number //= prime
        case SizeProduct(name, one, two):
            first, second = Divides(one, name), Divides(two, name)
            yield relation, (first, second)
            yield first, (second,)
            yield second, (first,)
        case _:
            yield relation, ()


def _ascending(sizes: Mapping[str, int]) -> list[str]:
    return sorted(sizes, key=lambda name: (sizes[name], name))


def likely_divisor(size: int) -> int:
    """Return a divisor of a size that code may rely on."""
    power = size & -size
    odd = size // power if power else 1
    if size <= _KEPT_FACTOR // 2:
        return max(size, 1)
    return min(power, _KEPT_FACTOR) * (odd if odd <= _KEPT_ODD else 1)


def sample(
    sizes: Mapping[str, int],
    relations: Iterable[Relation],
    seed: int,
    fixed: Iterable[str] = (),
    least: int = 0,
) -> dict[str, int]:
    """Return other sizes that have the relations, as far as they can be had together.

    Sizes whose order is not among the relations have another one.

    Args:
        sizes: the given sizes.
        relations: what is kept of them.
        seed: samples with different seeds differ in each size that is not fixed.
        fixed: the names that keep their size.
        least: the least size of those that do not depend on others.
    """
    relations = tuple(relations)
    chosen: dict[str, int] = {name: sizes[name] for name in fixed}
    used: set[int] = set()
    last = 0
    keeps_order = any(isinstance(relation, Ordered) for relation in relations)
    for number, name in enumerate(_order(sizes, relations)):
        if name in chosen:
            continue
        mine = [r for r in relations if r.name == name]
        equal = [_other(r, name) for r in relations if isinstance(r, Equal)]
        tied = next((other for other in equal if other in chosen), None)
        product = next((r for r in mine if isinstance(r, SizeProduct)), None)
        if tied is not None:
            chosen[name] = chosen[tied]
            continue
        if product is not None and product.one in chosen and product.two in chosen:
            chosen[name] = chosen[product.one] * chosen[product.two]
            continue
        divisors = [
            chosen[r.divisor] for r in mine if isinstance(r, Divides) and r.divisor in chosen
        ]
        base = math.lcm(*divisors, *(r.number for r in mine if isinstance(r, Multiple)))
        avoided = {*chosen.values(), *sizes.values()}
        factors: Iterable[int]
        if divisors:
            turn = (seed + number) % len(_FACTORS)
            factors = (*_FACTORS[turn:], *_FACTORS[:turn], *range(7, 1000, 2))
        else:
            usual = min(sizes[name], _LARGE) // 2 + 1 if keeps_order else 0
            start = -(-max(last + 1, usual, least) // base)
            primes = (prime for prime in _primes(start) if prime not in used)
            factors = itertools.islice(primes, seed * (2 + number % 3) % _SKIPPED, None)
        factor = next(factor for factor in factors if base * factor not in avoided)
        used |= set() if divisors else {factor}
        chosen[name] = base * factor
        if sizes[name] <= _SMALL or not keeps_order:
            last = max(last, chosen[name])
    return {name: chosen[name] for name in sizes}


def _order(sizes: Mapping[str, int], relations: Iterable[Relation]) -> list[str]:
    """Return the names in the order in which sizes are chosen, which become larger and larger.

    Sizes that others depend on come first.
    """
    relations = tuple(relations)
    kept = {(r.name, r.other) for r in relations if isinstance(r, Ordered)}
    names = _ascending(sizes)
    if not kept:
        names.reverse()
    for order in orders(sizes) if kept else ():
        if (order.name, order.other) not in kept:
            names.remove(order.other)
            names.insert(names.index(order.name), order.other)
    needs: dict[str, set[str]] = {name: set() for name in names}
    for relation in relations:
        match relation:
            case Divides(divisor, name):
                needs[name].add(divisor)
            case SizeProduct(name, one, two):
                needs[name] |= {one, two}
    ordered: list[str] = []
    while names:
        ready = next((name for name in names if needs[name] <= {*ordered}), names[0])
        names.remove(ready)
        ordered.append(ready)
    return ordered


def _primes(least: int) -> Iterator[int]:
    """Yield the odd primes from a number on."""
    for n in itertools.count(max(least, 3) | 1, 2):
        if all(n % d for d in range(3, math.isqrt(n) + 1, 2)):
            yield n


def _other(relation: Equal, name: str) -> str | None:
    if relation.name == name:
        return relation.other
    return relation.name if relation.other == name else None
