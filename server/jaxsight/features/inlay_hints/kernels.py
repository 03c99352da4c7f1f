"""The totals of a function, after its signature."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features import caveats, inputs
from jaxsight.features.inlay_hints.budget import LabelPart, fitted
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.inputs import WITH_SIZES
from jaxsight.features.kernels.table import table
from jaxsight.features.measuring.shown import ShownTimes, shown_times
from jaxsight.features.model import Hint
from jaxsight.figures.program_notes import SAME, change
from jaxsight.figures.summary import (
    UNKNOWN,
    communication,
    devices,
    host_transfer_figure,
    kernel_count,
    launches,
    long_compile,
    shorter_temporary_memory,
    temporary_memory,
)
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.text.markdown import prose
from jaxsight.text.pytree_display import ELLIPSIS
from jaxsight.text.units import count
from jaxsight.wire.messages.replies import Traced

SIGN = "▣"

_UPDATED = 3
"""Names of updated state that a line lists, a choice: most modules have one or two."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the totals of each function, with what changed since its file was saved."""
    for traced in shown.views:
        kernels = shown.kernels(traced)
        if kernels is None:
            continue
        view = kernels.view  # of an older text than the trace, until the new one is compiled
        if view.failed is not None and not view.supports_any():
            continue
        before, reply = shown.engine.programs.before(view), view.answer.reply
        difference = change(before, kernels.compiled) if before is not None else SAME
        updates = reply.updates if isinstance(reply, Traced) else ()
        times = shown_times(shown.engine, view, kernels.target, kernels)
        parts = list(_figures(kernels, difference, times))
        if view.subject.is_program:
            parts.insert(0, LabelPart(view.subject.title, 0))
        if updates:
            more = [ELLIPSIS] if len(updates) > _UPDATED else []
            first = f"updates: {', '.join([*updates[:_UPDATED], *more])}"
            parts.append(LabelPart(first, 6, (f"updates: {updates[0]}",)))
        mark = f"{SIGN} {caveats.mark(view)}"
        facts = [f"since the file was saved: {difference}"] if difference != SAME else []
        facts += [f"updates: {', '.join(updates)}"] if updates else []
        facts += filter(None, [inputs.call_of(view)])
        facts += [f"figures {WITH_SIZES}"] if view.assumed else []
        yield Hint(
            head(view),
            f"{mark}{fitted(parts, shown.wanted.width - len(mark))}",
            "\n\n".join(
                filter(None, (caveats.notice(view), table(kernels, times), *map(prose, facts)))
            ),
            view.stale,
        )


def _figures(
    kernels: LocatedFigures, difference: str, times: ShownTimes | None
) -> Iterator[LabelPart]:
    """Yield kernels, launches if there are more or fewer, memory, collectives and the target.

    Args:
        difference: what changed since the file was saved, which is shown after the target.
        times: what the function took, after the kernels, if the user had it measured.
    """
    compiled, graph = kernels.compiled, kernels.graph
    reply, kernels_of_it = kernels.view.answer.reply, kernel_count(graph)
    if kernels.view.would_be_compiled and isinstance(reply, Traced):
        operations = count(reply.equations, "operation")
        whole = f"eager: {operations}, {kernels_of_it} if jitted"
        yield LabelPart(whole, 0, (f"{kernels_of_it} if jitted",))
    else:
        yield LabelPart(kernels_of_it, 0)
    if times is not None:
        yield LabelPart(times.headline, 1, (f"{times.figure} measured",))
    counts = graph.launches_at_least, graph.launch_count
    if not graph.trips_known or any(count != graph.kernel_count for count in counts):
        yield LabelPart(launches(graph))
    elif graph.libraries:
        yield LabelPart(launches(graph), 6)
    if graph.callback_count:
        yield LabelPart(count(graph.callback_count, "host callback"), 2)
    for transfers in host_transfer_figure(graph):
        yield LabelPart(transfers, 3, (transfers.partition(",")[0],))
    per_device = " per device" if compiled.devices > 1 else ""
    temporaries = temporary_memory(compiled)
    if temporaries != UNKNOWN and not kernels.view.assumed:
        shorter = f"temp {shorter_temporary_memory(compiled)}{per_device}"
        yield LabelPart(f"temp {temporaries}{per_device}", 4, (shorter,))
    for moved in communication(graph):
        yield LabelPart(f"{moved}{per_device}", 5, (moved.partition(",")[0],))
    name = devices(compiled, kernels.target)
    if difference == SAME:
        yield LabelPart(name, 0)
    else:  # all differences, the first one, or none: `cpu (kernels 7 → 5)`
        first, *more = difference.split(" · ")
        shorter_names = (*[f"{name} ({first})"] * bool(more), name)
        yield LabelPart(f"{name} ({difference})", 0, shorter_names)
    if long := long_compile(compiled):
        yield LabelPart(long, 3)
    if kernels.view.assumed:
        yield LabelPart(WITH_SIZES, 0)
    if left_out := kernels.view.caveats:
        yield LabelPart(f"{caveats.MARK} {len(left_out)}", 0)


KIND = HintKind(("kernels",), hints, needs_kernels=True)
