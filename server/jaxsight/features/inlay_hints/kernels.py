"""The totals of a function, after its signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.features import caveats
from jaxsight.features import stale_marks as stale
from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.budget import LabelPart, fitted
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.kernels import compile_time, host_transfers
from jaxsight.features.kernels.launches import kernel_count, launches
from jaxsight.features.kernels.summary import (
    SAME,
    UNKNOWN,
    change,
    communication,
    devices,
    shorter_temporary_memory,
    temporary_memory,
)
from jaxsight.features.kernels.table import table
from jaxsight.features.model import Hint
from jaxsight.features.proposals.assumptions import WITH_SIZES
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.markdown import prose
from jaxsight.text.pytree_display import ELLIPSIS
from jaxsight.text.units import count
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Traced

SIGN = "▣"

_UPDATED = 3
"""Number of names of updated state that a line lists."""


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    for view in shown.views:
        kernels = shown.kernels(view)
        if kernels is not None:
            before = shown.engine.programs.before(view)
            yield from totals(kernels, before, shown.wanted.width)


def totals(kernels: Kernels, before: Compiled | None, width: int) -> Iterator[Hint]:
    """Yield the hint of a function's totals after its signature.

    Args:
        before: the program of the saved file, to show what changed since.
        width: the characters of a label.
    """
    view = kernels.view
    if view.failed is not None and not view.supports_any():
        return
    difference = change(before, kernels.compiled) if before is not None else SAME
    updates = _updates(view)
    parts = [*_figures(kernels, difference), *_shortened_updates(updates)]
    mark = f"{SIGN} {stale.mark(view)}"
    facts = [f"since the file was saved: {difference}"] if difference != SAME else []
    facts += [f"updates: {', '.join(updates)}"] if updates else []
    facts += filter(None, [called.origin(view)])
    facts += [f"figures {WITH_SIZES}"] if view.assumed else []
    yield Hint(
        head(view),
        f"{mark}{fitted(parts, width - len(mark))}",
        "\n\n".join(filter(None, (stale.notice(view), table(kernels), *map(prose, facts)))),
        view.stale,
    )


def _figures(kernels: Kernels, difference: str) -> Iterator[LabelPart]:
    """Yield kernels, launches if there are more or fewer, memory, collectives and the target.

    Args:
        difference: what changed since the file was saved, which is shown after the target.
    """
    compiled, graph = kernels.compiled, kernels.graph
    yield LabelPart(kernel_count(graph), 0)
    if not _launched_once(graph):
        yield LabelPart(launches(graph))
    elif graph.libraries:
        yield LabelPart(launches(graph), 6)
    if graph.callback_count:
        yield LabelPart(count(graph.callback_count, "host callback"), 2)
    for transfers in host_transfers.figure(graph):
        yield LabelPart(transfers, 3, (transfers.partition(",")[0],))
    per_device = " per device" if compiled.devices > 1 else ""
    temporaries = temporary_memory(compiled)
    if temporaries != UNKNOWN and not kernels.view.assumed:
        shorter = f"temp {shorter_temporary_memory(compiled)}{per_device}"
        yield LabelPart(f"temp {temporaries}{per_device}", 4, (shorter,))
    for moved in communication(graph):
        yield LabelPart(f"{moved}{per_device}", 5, (moved.partition(",")[0],))
    yield LabelPart(*_target(devices(compiled, kernels.target), difference))
    if long := compile_time.word(compiled):
        yield LabelPart(long, 3)
    if kernels.view.assumed:
        yield LabelPart(WITH_SIZES, 0)
    if left_out := kernels.view.caveats:
        yield LabelPart(f"{caveats.MARK} {len(left_out)}", 0)


def _launched_once(graph: Graph) -> bool:
    """Return whether each kernel is launched once, if a call of a library is one launch."""
    counts = graph.launches_at_least, graph.launch_count
    return graph.trips_known and all(count == graph.kernel_count for count in counts)


def _target(name: str, difference: str) -> tuple[str, int, tuple[str, ...]]:
    """Return the target with all differences, the first one, or none: `cpu (kernels 7 → 5)`."""
    if difference == SAME:
        return name, 0, ()
    first, *more = difference.split(" · ")
    return f"{name} ({difference})", 0, (*[f"{name} ({first})"] * bool(more), name)


def _shortened_updates(updates: Sequence[str]) -> Iterator[LabelPart]:
    """Yield the first names of state that a function updates."""
    if updates:
        more = [ELLIPSIS] if len(updates) > _UPDATED else []
        yield LabelPart(
            f"updates: {', '.join([*updates[:_UPDATED], *more])}", 6, (f"updates: {updates[0]}",)
        )


def _updates(view: View) -> Sequence[str]:
    reply = view.answer.reply
    return reply.updates if isinstance(reply, Traced) else ()


KIND = HintKind(("kernels",), _hints, needs_kernels=True)
