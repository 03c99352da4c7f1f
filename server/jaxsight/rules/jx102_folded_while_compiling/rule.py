"""JX102: XLA constant-folds something slow at compile time; reported before compiling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import size

RULE = Rule(
    "JX102",
    "folded-while-compiling",
    "Slow constant folding at compile time.",
    severity="warning",
    once_a_line=True,
)

SLOW = frozenset(
    {"sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter", "scatter-add", "scatter_add", "reduce_window",
     "reduce_window_sum", "conv_general_dilated"}
)  # fmt: skip
"""Operations that XLA's evaluator is so slow at that a fold of some size is an error."""
LEAST = 0.1
"""Seconds of folding that are worth a finding."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A computation on constants that XLA does at compile time."""

    elements: int
    bytes: int
    """The size of the result."""
    seconds: float
    """A rough estimate of how long XLA takes for it."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Find folds that take long, the longest first."""
    for fold in sorted(reading.folds, key=lambda each: -each.seconds):
        if fold.seconds < LEAST and not fold.trap:
            continue
        slow = fold.primitive in SLOW or fold.trap
        skipped = "; compilation skipped" if fold.trap else ""
        yield Noticed(
            f"XLA will constant-fold this at compile time (about {_time(fold.seconds)}){skipped}",
            fold.path,
            help="compute it once outside the function, pass one operand as an argument, or wrap "
            "an operand in `jax.lax.optimization_barrier`",
            notes=(
                f"all operands of {reading.quoted(fold.path)} are known at compile time",
                f"the result has {fold.elements:,} elements ({size(fold.bytes)})",
                "XLA evaluates constants on one CPU core",
            ),
            data=Folded(fold.elements, fold.bytes, fold.seconds),
            severity="error" if slow else "",
        )


def _time(seconds: float) -> str:
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
