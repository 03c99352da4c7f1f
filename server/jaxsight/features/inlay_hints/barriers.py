"""The fusion boundaries on the lines of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from jaxsight.features import stale_marks as stale
from jaxsight.features.inlay_hints.budget import listed
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_end, of_views
from jaxsight.features.kernels.sentence import sentence
from jaxsight.features.model import Hint
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.text.markdown import prose
from jaxsight.wire.kernel_graph import Kernel

BARRIER = "⊣"

_UNSAID = frozenset({"output", "XLA's choice"})
"""Reasons that are not fusion boundaries, or that are unknown."""
_SENTENCES = 12
"""Number of kernels that a tooltip describes."""


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the hints of all functions, without duplicates."""
    unsaid = _UNSAID | {"collective"} if shown.wanted.collectives else _UNSAID
    yield from of_views(shown, partial(boundaries, width=shown.wanted.width, unsaid=unsaid))


def boundaries(kernels: Kernels, width: int, unsaid: frozenset[str] = _UNSAID) -> Iterator[Hint]:
    """Yield a hint for each line on which kernels of a function end.

    Args:
        width: the characters of a label.
        unsaid: reasons without a hint.
    """
    view = kernels.view
    mark, notice = stale.mark(view), stale.notice(view)
    ends: dict[int, list[tuple[int, Kernel]]] = {}
    for index, kernel in enumerate(kernels.graph.kernels):
        place = kernels.ending(kernel)
        if kernel.ends_because not in unsaid and place is not None and view.supports(place):
            ends.setdefault(place.end.line, []).append((index, kernel))
    own = view.subject_range
    for line, ended in ends.items():
        at = line_end(view.module, line)
        sentences = [sentence(kernels, index, kernel) for index, kernel in ended[:_SENTENCES]]
        if len(ended) > _SENTENCES:
            sentences.append(f"and {len(ended) - _SENTENCES} more")
        # A hint in a helper names the traced function.
        of = [] if own.start <= at.start <= own.end else [view.subject.name]
        yield Hint(
            at,
            listed(f"{BARRIER} {mark}", _reasons(kernels, ended), of, width),
            "\n\n".join([*filter(None, [notice]), *map(prose, sentences)]),
            view.stale,
        )


def _reasons(kernels: Kernels, ended: Sequence[tuple[int, Kernel]]) -> list[str]:
    """Return the reasons of fusion boundaries on a line, each once: `fft` and `layout change`.

    If several kernels have one of them: `ends 7 kernels: reduction × 4` and `matmul × 3`.
    """
    counts = Counter(kernels.reason(kernel) for _, kernel in ended)
    if len(counts) in (1, len(ended)):
        return list(counts)
    common = [
        f"{reason} × {count}" if count > 1 else reason for reason, count in counts.most_common()
    ]
    return [f"ends {len(ended)} kernels: {common[0]}", *common[1:]]


KIND = HintKind(("barriers",), _hints, needs_kernels=True)
