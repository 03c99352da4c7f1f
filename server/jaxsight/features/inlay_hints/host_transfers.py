"""The transfers between host and device, at the end of the lines that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jaxsight.features import stale_marks as stale
from jaxsight.features.inlay_hints.budget import listed
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_end, of_views
from jaxsight.features.kernels.host_transfers import SIGN, paths, sentence, summed
from jaxsight.features.model import Hint
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.text.markdown import escaped, prose
from jaxsight.wire.host_transfers import HostTransfer

_DESCRIBED = 5
"""Number of transfers that a tooltip describes."""


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the hints of all functions, without duplicates."""
    yield from of_views(shown, partial(transfer_hints, width=shown.wanted.width))


def transfer_hints(kernels: Kernels, width: int) -> Iterator[Hint]:
    """Yield a hint for each line that transfers of a function are for, without callbacks.

    Args:
        width: the characters of a label.
    """
    view = kernels.view
    mark, notice = stale.mark(view), stale.notice(view)
    lines: dict[int, list[HostTransfer]] = {}
    for transfer in kernels.graph.offloads:
        at = next(filter(None, map(kernels.place, paths(kernels, transfer))), None)
        if at is not None and view.supports(at):
            lines.setdefault(at.end.line, []).append(transfer)
    own = view.subject_range
    for line, transfers in lines.items():
        at = line_end(view.module, line)
        # A hint in a helper names the traced function.
        of = [] if own.start <= at.start <= own.end else [view.subject.name]
        parts = [prose(sentence(kernels, transfer)) for transfer in transfers[:_DESCRIBED]]
        if len(transfers) > _DESCRIBED:
            parts.append(escaped(f"and {len(transfers) - _DESCRIBED} more"))
        yield Hint(
            at,
            listed(f"{SIGN} {mark}", summed(kernels.graph, transfers), of, width),
            "\n\n".join([*filter(None, [notice]), *parts, escaped(kernels.target.title)]),
            view.stale,
        )


KIND = HintKind(("collectives",), _hints, needs_kernels=True)
