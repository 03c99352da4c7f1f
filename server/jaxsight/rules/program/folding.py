"""When constant folding is worth measuring, and when what was measured is worth a word."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.wire.messages.compiling import Folding
from jaxsight.wire.messages.replies import Fold

_LEAST = 0.3
"""Seconds of predicted folding from which it is measured; predictions are right to the order of
magnitude.
"""
_SECONDS, _TIMES = 1.0, 2.0
"""How much longer, and how many times as long, compiling takes with folding to be reported, a
choice: less is within what compile times vary by, more hides seconds of each edit."""


def is_worth_measuring(folds: Sequence[Fold]) -> bool:
    """Whether folding is predicted to take so long that it is measured."""
    return sum(fold.seconds for fold in folds) >= _LEAST


def is_slow(measured: Folding) -> bool:
    """Whether folding takes so long that it is worth a word."""
    return (
        measured.folded - measured.unfolded >= _SECONDS
        and measured.folded >= _TIMES * measured.unfolded
    )
