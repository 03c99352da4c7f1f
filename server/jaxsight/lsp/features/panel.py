"""`jaxsight/panel`: the content of the kernel panel for the function at the cursor.

The parameters are `{"uri", "position"}` or `{"uri", "function"}`.
The answer is null if there is no function with example inputs; else it has the function, its
example sets, the available targets, the URIs of its documents, and `drawn`: the kernel graph with
the place of each equation.
A notification tells the client when there is a new answer.

`jaxsight/sweep`: how the function's figures grow with its sizes, as curves and a table.
docs/protocol.md describes the fields.
"""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight.features import caveats
from jaxsight.features.distributed.collectives import scope
from jaxsight.features.model import (
    DividedResult,
    Drawn,
    Panel,
    PanelEquation,
    PanelGroup,
    PanelTimes,
)
from jaxsight.features.sweeps.drawn_sweep import DrawnSweep
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.virtual_uris import PLAIN, VirtualDocument
from jaxsight.settings.schema import camel
from jaxsight.source.text import Position, Range
from jaxsight.sweeps.picture import DrawnShape, Picture
from jaxsight.sweeps.table import FIGURES
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
from jaxsight.wire.messages.requests import STYLES
from jaxsight.workers.compilation.environments import ready

REQUEST = "jaxsight/panel"
REFRESH = "jaxsight/panelRefresh"
SWEEP = "jaxsight/sweep"

Json = dict[str, Any]


class Panels:
    """Answers the request, and notifies the client of new answers about files that panels show."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._shown: set[str] = set()
        """Paths of files that panels show."""

    def register(self) -> None:
        """Serve panels."""
        self._context.serve(REQUEST, self._answer)
        self._context.serve(SWEEP, self._sweep)

    async def _answer(self, params: object) -> Json | None:
        match params:
            case {"uri": str(uri), "function": str(function)}:
                position = None
            case {"uri": str(uri), "position": {"line": int(line), "character": int(character)}}:
                function, position = "", _position(line, character)
            case _:
                raise JsonRpcInvalidParams(f"{REQUEST} takes a uri and a position or a function")
        view = self._context.documents.view(uri)
        if view is None:
            return None
        self._shown.add(view.path)
        where: Position | str = function if position is None else view.position(position)
        panel = await self._context.session.panel(view.path, where)
        return None if panel is None else await _panel(self._context, panel)

    async def _sweep(self, params: object) -> Json | None:
        match params:
            case {"uri": str(uri), "function": str(function), "sizes": str(sizes), **others}:
                figure = str(others.get("figure", "temp"))
            case _:
                raise JsonRpcInvalidParams(f"{SWEEP} takes a uri, a function and sizes")
        if figure not in FIGURES:
            raise JsonRpcInvalidParams(f"{SWEEP}: the figure is one of {', '.join(FIGURES)}")
        view = self._context.documents.view(uri)
        if view is None:
            return None
        session = self._context.session
        swept: Json = _json(await session.drawn_sweep(view.path, function, sizes.split(), figure))
        return swept

    def refresh(self, path: str) -> None:
        """Notify the client once that there are new answers about a file.

        A panel that still shows it sends a new request.
        """
        if path in self._shown:
            self._shown.discard(path)
            for view in self._context.documents.views(path)[:1]:
                self._context.notify(REFRESH, {"uri": view.uri})


def _position(line: int, character: int) -> types.Position:
    try:
        return types.Position(line=line, character=character)
    except ValueError as error:
        raise JsonRpcInvalidParams(f"{REQUEST}: {error}") from error


async def _panel(context: ClientContext, panel: Panel) -> Json:
    targets = await to_thread(ready)
    if panel.target and panel.target not in targets:
        targets.insert(0, panel.target)
    documents = {
        kind: VirtualDocument(panel.path, panel.function, kind).uri() for kind in (*PLAIN, *STYLES)
    }
    return {
        "function": panel.function,
        **(_location(context, panel.path, panel.range) or {"uri": "", "range": None}),
        "set": panel.chosen,
        "sets": list(panel.sets),
        "target": panel.target,
        "targets": targets,
        "stale": panel.stale,
        "assumed": panel.assumed,
        "measurable": panel.measurable,
        "trouble": panel.trouble,
        "documents": documents,
        "drawn": _drawn(context, panel, panel.drawn) if panel.drawn is not None else None,
        **caveats.record(panel.caveats),
    }


def _location(context: ClientContext, path: str, range: Range | None) -> Json | None:
    view = context.documents.window(path, range) if range is not None else None
    if view is None or range is None:
        return None
    return {"uri": view.uri, "range": context.converter.unstructure(view.to_range(range))}


def _drawn(context: ClientContext, panel: Panel, drawn: Drawn) -> Json:
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
        "edges": _json(graph.edges),
        "loops": _json(graph.loops),
        "branches": _json(graph.branches),
        "groups": [
            {**_json(group), "place": _location(context, panel.path, group.place)}
            for group in drawn.groups
        ],
        "parameters": [
            {**_json(value), "name": name}
            for value, name in zip(
                graph.parameters, drawn.inputs or ("",) * len(graph.parameters), strict=True
            )
        ],
        "outputs": _json(graph.outputs),
        "temporaries": _json(graph.temporaries),
        "constants": _json(graph.constants),
        "equations": [
            {**_json(equation), "place": _location(context, panel.path, equation.range)}
            for equation in drawn.equations
        ],
        "notes": [
            *caveats.lines(panel.caveats),
            *drawn.notes,
            *drawn.compiled.notes,
            *graph.notes,
        ],
        "change": drawn.change,
        "before": _before(drawn.before) if drawn.before is not None else None,
        "measured": _json(drawn.measured),
    }


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    most = graph.launches_at_most
    return {
        "launches": graph.launch_count if most is None else most,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": _json(compiled.memory) if compiled.is_complete else None,
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
        **_json(kernel),
        "what": kernel.title,
        "launches": kernel.launches if most is None else most,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": runs_known and most is not None,
        "runsKnown": runs_known,
        "line": kernel.instruction + above,
        "collective": {
            **_json(collective),
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


def _json(value: object) -> Any:
    """Return plain data as JSON."""
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    sent = _SENT.get(type(value))
    if sent is None:
        return value
    return {camel(name): _json(getattr(value, name)) for name in sent.split()}
