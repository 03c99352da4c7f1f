"""The collectives of a function, at the end of the lines that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jaxsight.features import stale_marks as stale
from jaxsight.features.distributed.collectives import SIGN, described, place, summed
from jaxsight.features.inlay_hints.budget import listed
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_end, of_views
from jaxsight.features.model import Hint
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.text.markdown import escaped, prose

_DESCRIBED = 5
"""Number of collectives that a tooltip describes."""


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the hints of all functions, without duplicates."""
    yield from of_views(shown, partial(collective_hints, width=shown.wanted.width))


def collective_hints(kernels: Kernels, width: int) -> Iterator[Hint]:
    """Yield a hint for each line that collectives of a function are for.

    Args:
        width: the characters of a label.
    """
    view, graph = kernels.view, kernels.graph
    mark, notice = stale.mark(view), stale.notice(view)
    lines: dict[int, list[int]] = {}
    for index, kernel in enumerate(graph.kernels):
        if kernel.collective is None:
            continue
        at = place(kernels, kernel)
        if at is not None and view.supports(at):
            lines.setdefault(at.end.line, []).append(index)
    own = view.subject_range
    for line, indices in lines.items():
        at = line_end(view.module, line)
        texts = summed((graph.kernels[index] for index in indices), graph)
        # A hint in a helper names the traced function.
        of = [] if own.start <= at.start <= own.end else [view.subject.name]
        parts = [_listed(kernels, index) for index in indices[:_DESCRIBED]]
        if len(indices) > _DESCRIBED:
            parts.append(escaped(f"and {len(indices) - _DESCRIBED} more"))
        parts.append(escaped(f"{kernels.compiled.devices} devices of {kernels.target.title}"))
        yield Hint(
            at,
            listed(f"{SIGN} {mark}", texts, of, width),
            "\n\n".join([*filter(None, [notice]), *parts]),
            view.stale,
        )


def _listed(kernels: Kernels, index: int) -> str:
    """Return a description of a collective: its title, and a list of what is known."""
    title, *facts = described(kernels, index)
    return "\n".join([prose(title), "", *(f"* {prose(fact)}" for fact in facts)])


KIND = HintKind(("collectives",), _hints, needs_kernels=True)
