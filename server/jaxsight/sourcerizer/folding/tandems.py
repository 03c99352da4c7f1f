"""Finds tandem repeats in sequences of numbers: a run that directly follows an equal one."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

_Numbers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

LEAST_SAVED = 16
"""The minimum number of equations that a loop must save."""

_MOST_TRIED = 24
"""The number of tandem repeats that are examined, those that save the most."""


def tandems(tokens: _Numbers, weights: _Numbers) -> list[tuple[int, int, int]]:
    """Return tandem repeats as start, length and count, with every phase; the best first."""
    repeats: list[tuple[int, int, int]] = []
    for _, start, period, length in tandem_runs(tokens, weights):
        count = length // period + 1
        slack = length + period - count * period
        repeats.extend((start + phase, period, count) for phase in range(slack + 1))
        if count > 2:
            repeats.extend((start + phase, period, count - 1) for phase in range(slack + 1, period))
    return repeats


def tandem_runs(tokens: _Numbers, weights: _Numbers) -> list[tuple[int, int, int, int]]:
    """Return tandem repeats, the best first.

    Each is the number of equations that it saves, its start, its period, and the length of the
    repeats after the first one.
    """
    repeats: list[tuple[int, int, int, int]] = []
    size = len(tokens)
    ranks = np.unique(tokens, return_inverse=True)[1].astype(np.int32)  # half the memory to compare
    total = np.concatenate([[0], np.cumsum(weights)])
    for period in range(1, size // 2 + 1):
        equal = ranks[period:] == ranks[:-period]
        if not equal.any():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[0], equal.astype(np.int8), [0]])))
        for start, stop in edges.reshape(-1, 2):
            length = int(stop - start)
            count = length // period + 1
            if count < 2:
                continue
            saved = int(total[start + (count - 1) * period] - total[start])
            if saved >= LEAST_SAVED:
                repeats.append((saved, int(start), period, length))
    repeats.sort(key=lambda repeat: (-repeat[0], repeat[2]))
    return repeats[:_MOST_TRIED]
