"""A rule's fix: the edits that it proposes, and how one of them is shown to help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext


class Proof(Enum):
    """How a changed program is shown to be better than the original."""

    GONE = "the rule has fewer findings"
    FEWER = "less is launched, stored or moved, with no more findings of the rule"
    SMALLER = "temporaries are smaller"
    COMMUNICATED = "the rule has fewer findings, and fewer bytes are moved between devices"
    WRITTEN = "the text has fewer findings, and is the same but for waits; nothing is traced"


@dataclass(frozen=True, slots=True)
class Remedy:
    """How findings of a rule are fixed."""

    summary: str
    """The proposed code, for the table of fixes."""
    propose: Callable[[FixContext], Iterator[Candidate]]
    """Yield changes to try, the best first."""
    proof: Proof = Proof.GONE
    timed: bool = False
    """Whether the title also shows the compile times of both forms."""
    trades: frozenset[str] = frozenset()
    """Figures of the target that may get worse in exchange; the title shows both.

    A change that makes another figure worse is dropped.
    """
    costs_any: bool = False
    """Whether the change may take any time: it fixes an error, or a cost of seconds.

    Other changes may take at most twice as long as the original.
    """

    @staticmethod
    def correcting(summary: str, propose: Callable[[FixContext], Iterator[Candidate]]) -> Remedy:
        """Return a remedy whose results are right where they were not, for what that takes."""
        return Remedy(summary, propose, trades=figures.ALL, costs_any=True)
