"""JX102: XLA computes something of constants while it compiles, for seconds or minutes.

What may be folded is predicted from the traced program, and only then measured: the program is compiled with constant folding
and without. A finding is of the measurement alone; the prediction names what is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.compiler.protocol import Folding
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.protocol import Fold
from jaxsight.units import size

RULE = Rule(
    "JX102",
    "folded-while-compiling",
    "XLA computes this while it compiles.",
    severity="warning",
    always=False,
)

SLOW = frozenset(
    {"sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter", "scatter-add", "scatter_add", "reduce_window",
     "reduce_window_sum", "conv_general_dilated"}
)  # fmt: skip
"""Operations that XLA's evaluator is so slow at that a fold of some size is an error."""
LEAST = 0.3
"""Seconds of predicted folding that are worth measuring: predictions are right to the order of magnitude."""
SECONDS, TIMES = 1.0, 2.0
"""By how much longer, and how many times as long, compiling takes with folding to be reported."""
_SHARE = 0.1
"""Folds that are predicted to take less than this share of the longest are not counted."""


def is_candidate(folds: Sequence[Fold]) -> bool:
    """Whether it is worth measuring what folding costs."""
    return sum(fold.seconds for fold in folds) >= LEAST


def is_slow(measured: Folding) -> bool:
    """Whether folding takes so long that it is worth a word."""
    return (
        measured.folded - measured.unfolded >= SECONDS
        and measured.folded >= TIMES * measured.unfolded
    )


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """What folding was measured to cost, at the fold that is predicted to take the longest."""
    measured, target = reading.folding, reading.target
    if measured is None or target is None or not reading.folds or not is_slow(measured):
        return
    worst = max(reading.folds, key=lambda fold: fold.seconds)
    others = sum(fold.seconds >= worst.seconds * _SHARE for fold in reading.folds) - 1
    more = f" and {others} more" if others else ""
    least = "more than " if measured.is_ended else ""
    yield Noticed(
        f"compiling for {target.short} takes {least}{_time(measured.folded)} with constant folding, "
        f"{_time(measured.unfolded)} without: {reading.quoted(worst.path)} ({size(worst.bytes)}){more}",
        worst.path,
        severity="error" if worst.primitive in SLOW else "",
    )


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
