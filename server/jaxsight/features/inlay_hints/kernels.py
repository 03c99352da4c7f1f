"""The totals of a function, after its signature."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features import stale_marks as stale
from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.kind import Kind, Shown
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.kernels.summary import SAME, change, headline
from jaxsight.features.kernels.table import table
from jaxsight.features.model import Hint
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Traced

SIGN = "▣"

_UPDATED = 3
"""Number of names of updated state that a line lists."""


def _hints(shown: Shown) -> Iterator[Hint]:
    for view in shown.views:
        kernels = shown.kernels(view)
        if kernels is not None:
            yield from totals(kernels, shown.engine.programs.before(view))


def totals(kernels: Kernels, before: Compiled | None) -> Iterator[Hint]:
    """Yield the hint of a function's totals after its signature.

    Args:
        before: the program of the saved file, to show what changed since.
    """
    view = kernels.view
    if view.failed is not None and not view.supports_any():
        return
    difference = change(before, kernels.compiled) if before is not None else SAME
    since = f" ({difference})" if difference != SAME else ""
    figures = headline(kernels.compiled, kernels.target)
    yield Hint(
        head(view),
        f"{SIGN} {stale.mark(view)}{figures}{since}{_updates(view)}{called.label(view)}",
        "\n\n".join(filter(None, (stale.notice(view), table(kernels)))),
        view.stale,
    )


def _updates(view: View) -> str:
    """Return ` · updates: model, optimizer`, with the first names."""
    reply = view.answer.reply
    if not isinstance(reply, Traced) or not reply.updates:
        return ""
    more = ["…"] if len(reply.updates) > _UPDATED else []
    return f" · updates: {', '.join([*reply.updates[:_UPDATED], *more])}"


KIND = Kind(("kernels",), _hints, needs_kernels=True)
