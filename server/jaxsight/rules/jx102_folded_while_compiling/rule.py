"""JX102: XLA folds constants for seconds or minutes while it compiles.

What may be folded is predicted from the traced program and then measured: the program is compiled
with and without constant folding. A finding reports the measurement; the prediction only names what
is folded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.program.folding import is_slow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import CompileTimes, Rule
from jaxsight.rules.violation import Violation
from jaxsight_source import units

RULE = Rule(
    "JX102",
    "folded-while-compiling",
    "Slow constant folding at compile time.",
    severity="warning",
    always=False,
    measures=CompileTimes.FOLDING,
    says_times=True,
)

SLOW = frozenset(
    {
        "sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter",
        "scatter-add", "scatter_add", "reduce_window", "reduce_window_sum", "conv_general_dilated",
    }
)  # fmt: skip
"""Operations that XLA's evaluator is so slow at that a fold of some size is an error (nanoseconds
in `tracer/programs/folding_costs.py`)."""
_SHARE = 0.1
"""Folds below this share of the longest are not counted: predictions are right to such a factor."""


@dataclass(frozen=True, slots=True)
class SlowFolding:
    """A fold that takes long."""

    bytes: int
    """Size of the result that is predicted to take the longest."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Report what folding was measured to cost, where it is predicted to take the longest."""
    measured, target = view.folding, view.target
    if measured is None or target is None or not view.folds or not is_slow(measured):
        return
    worst = max(view.folds, key=lambda fold: fold.seconds)
    further = sum(fold.seconds >= worst.seconds * _SHARE for fold in view.folds) - 1
    more = f" and {further} more" if further else ""
    least = "more than " if measured.is_ended else ""
    folded, unfolded = units.seconds(measured.folded), units.seconds(measured.unfolded)
    yield Violation(
        f"compiling for {target.short} takes {least}{folded} with constant folding, "
        f"{unfolded} without",
        worst.path,
        help="compute it once outside the function, pass an operand as an argument, or turn "
        "folding off with `compiler_options`",
        notes=(
            f"XLA folds {view.quoted(worst.path)} ({units.size(worst.bytes)}){more}",
            "both compile times were measured on this machine",
        ),
        data=SlowFolding(worst.bytes),
        severity="error" if worst.primitive in SLOW else "",
    )
