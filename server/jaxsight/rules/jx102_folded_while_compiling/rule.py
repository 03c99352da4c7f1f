"""JX102: XLA computes something of constants while it compiles, slowly. Told before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import size

RULE = Rule(
    "JX102",
    "folded-while-compiling",
    "XLA computes this while it compiles.",
    severity="warning",
    once_a_line=True,
)

SLOW = frozenset(
    {"sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter", "scatter-add", "scatter_add", "reduce_window",
     "reduce_window_sum", "conv_general_dilated"}
)  # fmt: skip
"""Operations that XLA's evaluator is so slow at that a fold of some size is an error."""
LEAST = 0.1
"""Seconds of folding that are worth a word."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """The folds that take long, the longest first."""
    for fold in sorted(reading.folds, key=lambda each: -each.seconds):
        if fold.seconds < LEAST and not fold.trap:
            continue
        slow = fold.primitive in SLOW or fold.trap
        waits = ". It is not compiled for that reason" if fold.trap else ""
        yield Noticed(
            f"XLA will compute {reading.quoted(fold.path)} while it compiles, on one core, as all its operands are constants: "
            f"{fold.elements:,} elements, {size(fold.bytes)}, about {_time(fold.seconds)}{waits}. Make a constant an argument, compute this "
            "once outside of the function, or put `jax.lax.optimization_barrier` around an operand.",
            fold.path,
            severity="error" if slow else "",
        )


def _time(seconds: float) -> str:
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
