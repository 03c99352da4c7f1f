"""What a panel draws as JSON: `Drawn` of `docs/protocol.md`, and of the panel's `messages.ts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxsight.figures.drawn import (
    At,
    DividedResult,
    Drawn,
    PanelEquation,
    PanelGroup,
    PanelTimes,
)
from jaxsight.figures.summary import scope
from jaxsight.sweeps.picture import DrawnShape, Picture
from jaxsight.text.spelling import camel
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


def drawn_record(
    drawn: Drawn[At],
    located: Callable[[At], Json | None],
    *,
    marks: Sequence[str] = (),
    notes: Sequence[str] = (),
    above: int = 0,
) -> Json:
    """Return what a panel draws as JSON.

    Args:
        drawn: the graph.
        located: returns a place as JSON, `{"uri", "range"}`.
        marks: what the headline ends with.
        notes: the first ones.
        above: comment lines at the top of the HLO document.
    """

    def place(at: At | None) -> Json | None:
        return None if at is None else located(at)

    graph = drawn.compiled.graph
    knows_temporaries = drawn.compiled.knows_temporaries
    return {
        **_figures(drawn.compiled),
        "headline": " · ".join([drawn.headline, *marks]),
        "device": drawn.device,
        "assigned": drawn.compiled.temporaries if knows_temporaries else None,
        "assignedAtMost": drawn.compiled.temporaries_at_most if knows_temporaries else None,
        "devices": drawn.compiled.devices,
        "mesh": drawn.mesh,
        "kernels": list(_kernels(drawn, above)),
        "edges": as_json(graph.edges),
        "loops": as_json(graph.loops),
        "branches": as_json(graph.branches),
        "groups": [{**as_json(group), "place": place(group.place)} for group in drawn.groups],
        "parameters": [
            {**as_json(value), "name": name}
            for value, name in zip(
                graph.parameters, drawn.inputs or ("",) * len(graph.parameters), strict=True
            )
        ],
        "outputs": as_json(graph.outputs),
        "temporaries": as_json(graph.temporaries),
        "constants": as_json(graph.constants),
        "equations": [
            {**as_json(equation), "place": place(equation.range)} for equation in drawn.equations
        ],
        "notes": [*notes, *drawn.notes, *drawn.compiled.notes, *graph.notes],
        "change": drawn.change,
        "before": _before(drawn.before) if drawn.before is not None else None,
        "measured": as_json(drawn.measured),
    }


def _kernels(drawn: Drawn[At], above: int) -> Iterator[Json]:
    graph = drawn.compiled.graph
    described = iter(drawn.collectives)
    measured = drawn.measured.kernels if drawn.measured is not None else ()
    for index, (kernel, reason, seconds, group) in enumerate(
        zip(graph.kernels, drawn.reasons, drawn.seconds, drawn.group_of, strict=True)
    ):
        yield {
            **_kernel(kernel, graph, above),
            "endsBecause": reason,
            "seconds": seconds,
            "measured": measured[index] if measured else None,
            "group": group,
            "description": list(next(described, ())) if kernel.collective else [],
        }


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    most = graph.launches_at_most
    return {
        "launches": graph.launch_count if most is None else most,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": as_json(compiled.memory) if compiled.is_complete else None,
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
        **as_json(kernel),
        "what": kernel.title,
        "launches": kernel.launches if most is None else most,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": runs_known and most is not None,
        "runsKnown": runs_known,
        "line": kernel.instruction + above,
        "collective": {
            **as_json(collective),
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
    Picture: "title width height shapes",
    DrawnShape: "tag attributes text",
}
"""The fields that the client gets as they are, in camel case; most other fields are for rules."""


def as_json(value: object) -> Any:
    """Return plain data as JSON, of what panels show the fields that they need."""
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    sent = _SENT.get(type(value))
    if sent is None:
        return value
    return {camel(name): as_json(getattr(value, name)) for name in sent.split()}
