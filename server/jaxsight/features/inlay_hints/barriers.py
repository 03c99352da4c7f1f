"""The fusion boundaries on the lines of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_hints, of_views
from jaxsight.features.model import Hint
from jaxsight.figures.rows import sentence
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text.markdown import prose

BARRIER = "⊣"

_UNSAID = frozenset({"output", "XLA's choice"})
"""Reasons that are not fusion boundaries, or that are unknown."""
_SENTENCES = 12
"""Number of kernels that a tooltip describes: one paragraph each, about a screen of them."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield a hint for each line on which kernels of a function end."""
    unsaid = _UNSAID | {"collective"} if shown.wanted.collectives else _UNSAID

    def boundaries(kernels: LocatedFigures) -> Iterator[Hint]:
        every = kernels.graph.kernels
        ending = [index for index, kernel in enumerate(every) if kernel.ends_because not in unsaid]
        return line_hints(
            shown,
            kernels,
            BARRIER,
            [(kernels.ending(every[index]), index) for index in ending],
            lambda ended: _reasons(kernels, ended),
            lambda index: prose(sentence(kernels, index)),
            _SENTENCES,
        )

    yield from of_views(shown, boundaries)


def _reasons(kernels: LocatedFigures, ended: Sequence[int]) -> list[str]:
    """Return the reasons of fusion boundaries on a line, each once: `fft` and `layout change`.

    If several kernels have one of them: `ends 7 kernels: reduction × 4` and `matmul × 3`.
    """
    counts = Counter(kernels.reason(kernels.graph.kernels[index]) for index in ended)
    if len(counts) in (1, len(ended)):
        return list(counts)
    common = [
        f"{reason} × {count}" if count > 1 else reason for reason, count in counts.most_common()
    ]
    return [f"ends {len(ended)} kernels: {common[0]}", *common[1:]]


KIND = HintKind(("barriers",), hints, needs_kernels=True)
