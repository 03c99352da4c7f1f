"""How an expression was compiled, in words."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.figures.summary import devices
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Range
from jaxsight.text.units import some

_NAMED = 5
"""Equations or kernels that a line names, a choice: it must not wrap; further ones are counted."""
_LONGEST = 40
"""Length of an expression, in characters, up to which it is named: a sentence names several."""


def _numbers(numbers: Sequence[int]) -> str:
    """Return `1`, `1, 2` or `1–4`; a long list is written by its ends."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) > 4:  # the ends of more are as long
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def expression_words(kernels: LocatedFigures, place: Range) -> str:
    """Return how an expression was compiled; empty if unknown.

    The text is `fused into kernel 2 of 2 with …` or `in kernels 1, 2 of 3; recomputed in kernel 4`.
    """
    indices = kernels.holding(place)
    total = kernels.graph.kernel_count
    if not indices:
        return ""
    here = devices(kernels.compiled, kernels.target)
    if len(indices) > 1:
        again = {
            index
            for index in indices
            for path in kernels.graph.kernels[index].recomputes
            if (at := kernels.place(path)) is not None and place.holds(at)
        }
        first = [index + 1 for index in indices if index not in again]
        words = f"in kernel{'s' if len(first) > 1 else ''} {_numbers(first)} of {total}"
        if again:
            words += f"; recomputed in kernel {_numbers([i + 1 for i in sorted(again)])}"
        return f"{words} · {here}"
    (index,) = indices
    kernel = kernels.graph.kernels[index]
    others = (
        " ".join(kernels.source(path).split())
        for path in kernel.equations
        if (at := kernels.place(path)) is not None and not place.holds(at)
    )
    named = dict.fromkeys(f"`{text}`" for text in others if len(text) <= _LONGEST)
    partners = some(list(named), _NAMED)
    alone = f"kernel {index + 1} of {total}, {kernel.title}"
    words = f"fused into kernel {index + 1} of {total} with {partners}" if partners else alone
    if kernel.launches > 1:
        words += f", launched {kernel.launches} times"
    end = kernels.ending(kernel)
    if end is not None and place.holds(end) and kernel.ends_because != "output":
        words += f"; fusion boundary: {kernels.reason(kernel)}"
    return f"{words} · {here}"
