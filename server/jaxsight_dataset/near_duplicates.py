"""Counts rows that resemble an earlier one, by their MinHash signatures.

Of two signatures, as many hashes agree as shingles of operations that two programs share (Broder,
1997). Signatures that agree in a band of consecutive hashes are compared: with bands of four hashes
of 32, those of a similarity of 0.9 miss each other once in 5,000 times.
"""

from __future__ import annotations

from collections.abc import Sequence

SIMILARITY = 0.9
"""The Jaccard similarity from which on two programs are near duplicates, a choice: about one
operation of 60 differs. Less would count variations that are of use."""

_BAND = 4  # see above


class NearDuplicates:
    """The signatures of rows that resemble none before them.

    Attributes:
        count: how many rows resembled an earlier one.
    """

    def __init__(self) -> None:
        self.count = 0
        self._bands: dict[tuple[int, ...], list[Sequence[int]]] = {}

    def add(self, minhash: Sequence[int]) -> bool:
        """Return whether a row resembles an earlier one; count it then, else keep its signature."""
        starts = range(0, len(minhash), _BAND)
        bands = [(start, *minhash[start : start + _BAND]) for start in starts]
        candidates = (each for band in bands for each in self._bands.get(band, ()))
        if any(_share(minhash, each) >= SIMILARITY for each in candidates):
            self.count += 1
            return True
        for band in bands:
            self._bands.setdefault(band, []).append(minhash)
        return False


def _share(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the part of the hashes of two signatures that are equal."""
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first)
