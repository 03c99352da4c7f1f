"""What a rule's `fix.py` declares: the edits that it proposes, and how one of them shows that it
helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.engine.fixes.asked import Asked, Candidate


class Proof(Enum):
    """How a changed program shows that it is better than the original."""

    GONE = "the rule has fewer findings"
    FEWER = "less is launched, stored or moved, with no more findings of the rule"
    SMALLER = "temporaries are smaller"


@dataclass(frozen=True, slots=True)
class Remedy:
    """How the findings of a rule are fixed."""

    summary: str
    """What is written, for the table of fixes."""
    propose: Callable[[Asked], Iterator[Candidate]]
    """Yield changes to try, the best first."""
    proof: Proof = Proof.GONE
    timed: bool = False
    """Whether the title also says how long both forms take to compile."""
    trades: frozenset[str] = frozenset()
    """Figures of the target that may be worse, for what is better: the title has both.

    A change that makes another figure worse is dropped.
    """
    costs_any: bool = False
    """Whether the change may take any time: what it mends is an error, or takes seconds by itself.

    Other changes may take twice as long as the original at most.
    """
