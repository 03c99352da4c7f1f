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
        self._signatures: list[tuple[int, ...]] = []
        self._bands: dict[tuple[int, ...], list[int]] = {}
        self._known: set[tuple[int, ...]] = set()

    def add(self, minhash: Sequence[int]) -> bool:
        """Return whether a row resembles an earlier one; count it then, else keep its signature."""
        signature = tuple(minhash)
        bands = [
            (start, *signature[start : start + _BAND]) for start in range(0, len(signature), _BAND)
        ]
        candidates = {at for band in bands for at in self._bands.get(band, ())}
        equal = (
            sum(a == b for a, b in zip(signature, self._signatures[at], strict=True))
            for at in candidates
        )
        if signature in self._known or any(n / len(signature) >= SIMILARITY for n in equal):
            self.count += 1
            return True
        self._known.add(signature)
        for band in bands:
            self._bands.setdefault(band, []).append(len(self._signatures))
        self._signatures.append(signature)
        return False
