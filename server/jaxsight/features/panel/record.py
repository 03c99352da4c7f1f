"""A panel as JSON: the answer of `jaxsight/panel`, for editors and for pages.

docs/protocol.md describes the fields, and the panel's `messages.ts` has their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxsight.features import caveats
from jaxsight.features.distributed.collectives import scope
from jaxsight.features.model import (
    DividedResult,
    DocumentKind,
    Drawn,
    Panel,
    PanelEquation,
    PanelGroup,
    PanelTimes,
)
from jaxsight.features.sweeps.drawn_sweep import DrawnSweep
from jaxsight.settings.schema import camel
from jaxsight.source.text import Range
from jaxsight.sweeps.picture import DrawnShape, Picture
from jaxsight.wire.kernel_graph import (
    Branch,
    Collective,
    Constant,
    Edge,
    End,
    Graph,
    Kernel,
    Loop,
    Temporary,
    Value,
)
from jaxsight.wire.messages.compiling import Compiled, Memory

Json = dict[str, Any]
Locate = Callable[[Range | None], Json | None]
"""Returns `{"uri", "range"}` of a place in the panel's file; `None` where nobody shows it."""


def record(
    panel: Panel, locate: Locate, targets: Sequence[str], documents: Mapping[DocumentKind, str]
) -> Json:
    """Return a panel as JSON.

    Args:
        panel: the panel.
        locate: says where a place of its file is shown.
        targets: the targets that can be chosen.
        documents: the URIs of its texts, by kind.
    """
    return {
        "function": panel.function,
        **(locate(panel.range) or {"uri": "", "range": None}),
        "set": panel.chosen,
        "sets": list(panel.sets),
        "target": panel.target,
        "targets": list(targets),
        "stale": panel.stale,
        "assumed": panel.assumed,
        "measurable": panel.measurable,
        "trouble": panel.trouble,
        "documents": dict(documents),
        "drawn": _drawn(panel, panel.drawn, locate) if panel.drawn is not None else None,
        **caveats.record(panel.caveats),
    }


def _drawn(panel: Panel, drawn: Drawn, locate: Locate) -> Json:
    graph = drawn.compiled.graph
    described = iter(drawn.collectives)
    measured = drawn.measured.kernels if drawn.measured is not None else ()
    knows_temporaries = drawn.compiled.knows_temporaries
    above = len(caveats.comment_lines(panel.caveats, "hlo")) + panel.stale + bool(panel.assumed)
    return {
        **_figures(drawn.compiled),
        "headline": " · ".join([drawn.headline, *caveats.marks(panel.caveats)]),
        "device": drawn.device,
        "assigned": drawn.compiled.temporaries if knows_temporaries else None,
        "assignedAtMost": drawn.compiled.temporaries_at_most if knows_temporaries else None,
        "devices": drawn.compiled.devices,
        "mesh": drawn.mesh,
        "kernels": [
            {
                **_kernel(kernel, graph, above),
                "endsBecause": reason,
                "seconds": seconds,
                "measured": measured[index] if measured else None,
                "group": group,
                "description": list(next(described, ())) if kernel.collective else [],
            }
            for index, (kernel, reason, seconds, group) in enumerate(
                zip(graph.kernels, drawn.reasons, drawn.seconds, drawn.group_of, strict=True)
            )
        ],
        "edges": plain(graph.edges),
        "loops": plain(graph.loops),
        "branches": plain(graph.branches),
        "groups": [{**plain(group), "place": locate(group.place)} for group in drawn.groups],
        "parameters": [
            {**plain(value), "name": name}
            for value, name in zip(
                graph.parameters, drawn.inputs or ("",) * len(graph.parameters), strict=True
            )
        ],
        "outputs": plain(graph.outputs),
        "temporaries": plain(graph.temporaries),
        "constants": plain(graph.constants),
        "equations": [
            {**plain(equation), "place": locate(equation.range)} for equation in drawn.equations
        ],
        "notes": [
            *caveats.lines(panel.caveats),
            *drawn.notes,
            *drawn.compiled.notes,
            *graph.notes,
        ],
        "change": drawn.change,
        "before": _before(drawn.before) if drawn.before is not None else None,
        "measured": plain(drawn.measured),
    }


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    most = graph.launches_at_most
    return {
        "launches": graph.launch_count if most is None else most,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": plain(compiled.memory) if compiled.is_complete else None,
    }


def _before(compiled: Compiled) -> Json:
    graph = compiled.graph
    return {
        **_figures(compiled),
        "kernels": [
            {**_kernel(kernel, graph), "endsBecause": kernel.ends_because}
            for kernel in graph.kernels
        ],
    }


def _kernel(kernel: Kernel, graph: Graph, above: int = 0) -> Json:
    """Convert a kernel; `above` counts the comment lines at the top of the HLO document."""
    most, collective = kernel.launches_at_most, kernel.collective
    runs_known = all(graph.loops[index].trips is not None for index in kernel.loops)
    return {
        **plain(kernel),
        "what": kernel.title,
        "launches": kernel.launches if most is None else most,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": runs_known and most is not None,
        "runsKnown": runs_known,
        "line": kernel.instruction + above,
        "collective": {
            **plain(collective),
            "async": collective.is_async,
            "scope": scope(collective),
        }
        if collective is not None
        else None,
    }


_SENT: dict[type, str] = {
    Value: "text bytes",
    End: "what index",
    Edge: "source target value",
    Loop: "name trips waits parent equation branch carried",
    Branch: "name arm arms equation loop parent",
    Temporary: "value producer consumers equation",
    Constant: "name value folded",
    Memory: "arguments outputs temporaries aliased code peak",
    Collective: "kind bytes axes groups inserted",
    Kernel: "name kind equations ends_at feeds inputs outputs flops loops branch runs recomputes",
    PanelGroup: "title parent",
    PanelTimes: "headline stale seconds device_seconds unmatched_seconds notes",
    PanelEquation: "path primitive outputs text divided scope backward",
    DividedResult: "text local cells",
    DrawnSweep: "suggested sizes picture columns rows remarks trouble",
    Picture: "title width height shapes",
    DrawnShape: "tag attributes text",
}
"""The fields that the client gets as they are, in camel case; most other fields are for rules."""


def plain(value: object) -> Any:
    """Return data that is shown as JSON."""
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    sent = _SENT.get(type(value))
    if sent is None:
        return value
    return {camel(name): plain(getattr(value, name)) for name in sent.split()}
