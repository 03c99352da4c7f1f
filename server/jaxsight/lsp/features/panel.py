"""`jaxsight/panel`: the content of the kernel panel for the function at the cursor.

The parameters are `{"uri", "position"}` or `{"uri", "function"}`.
The answer is null if there is no function with example inputs; else it has the function, its
example sets, the available targets, the URIs of its documents, and `drawn`: the kernel graph with
the place of each equation.
A notification tells the client when there is a new answer.
docs/protocol.md describes the fields.
"""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight.features import caveats
from jaxsight.features.distributed.collectives import scope
from jaxsight.features.model import DividedResult, Drawn, Panel, PanelEquation, PanelGroup
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.virtual_uris import PLAIN, VirtualDocument
from jaxsight.source.text import Position, Range
from jaxsight.wire.kernel_graph import (
    Branch,
    Collective,
    Constant,
    Edge,
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
    above = len(caveats.comment_lines(panel.caveats, "hlo")) + panel.stale + bool(panel.assumed)
    return {
        **_figures(drawn.compiled),
        "headline": " · ".join([drawn.headline, *caveats.marks(panel.caveats)]),
        "device": drawn.device,
        "assigned": drawn.compiled.temporaries if drawn.compiled.knows_temporaries else None,
        "assignedAtMost": drawn.compiled.temporaries_at_most
        if drawn.compiled.knows_temporaries
        else None,
        "devices": drawn.compiled.devices,
        "mesh": drawn.mesh,
        "kernels": [
            {
                **_kernel(kernel, graph, above),
                "endsBecause": reason,
                "seconds": seconds,
                "group": group,
                "description": list(next(described, ())) if kernel.collective else [],
            }
            for kernel, reason, seconds, group in zip(
                graph.kernels, drawn.reasons, drawn.seconds, drawn.group_of, strict=True
            )
        ],
        "edges": [_edge(edge) for edge in graph.edges],
        "loops": [_loop(loop) for loop in graph.loops],
        "branches": [_branch(branch) for branch in graph.branches],
        "groups": [_group(context, panel.path, group) for group in drawn.groups],
        "parameters": [
            {**_value(value), "name": name}
            for value, name in zip(
                graph.parameters, drawn.inputs or ("",) * len(graph.parameters), strict=True
            )
        ],
        "outputs": [_value(value) for value in graph.outputs],
        "temporaries": [_temporary(temporary) for temporary in graph.temporaries],
        "constants": [_constant(constant) for constant in graph.constants],
        "equations": [_equation(context, panel.path, equation) for equation in drawn.equations],
        "notes": [
            *caveats.lines(panel.caveats),
            *drawn.notes,
            *drawn.compiled.notes,
            *graph.notes,
        ],
        "change": drawn.change,
        "before": _before(drawn.before) if drawn.before is not None else None,
    }


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    most = graph.launches_at_most
    return {
        "launches": graph.launch_count if most is None else most,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": _memory(compiled.memory) if compiled.is_complete else None,
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


def _memory(memory: Memory) -> Json:
    return {
        "arguments": memory.arguments,
        "outputs": memory.outputs,
        "temporaries": memory.temporaries,
        "aliased": memory.aliased,
        "code": memory.code,
        "peak": memory.peak,
    }


def _value(value: Value) -> Json:
    return {"text": value.text, "bytes": value.bytes}


def _kernel(kernel: Kernel, graph: Graph, above: int = 0) -> Json:
    """Convert a kernel; `above` counts the comment lines at the top of the HLO document."""
    most = kernel.launches_at_most
    runs_known = all(graph.loops[index].trips is not None for index in kernel.loops)
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "what": kernel.title,
        "equations": list(kernel.equations),
        "endsAt": kernel.ends_at,
        "feeds": list(kernel.feeds),
        "inputs": [_value(value) for value in kernel.inputs],
        "outputs": [_value(value) for value in kernel.outputs],
        "flops": kernel.flops,
        "loops": list(kernel.loops),
        "branch": kernel.branch,
        "launches": kernel.launches if most is None else most,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": runs_known and most is not None,
        "runs": kernel.runs,
        "runsKnown": runs_known,
        "recomputes": list(kernel.recomputes),
        "line": kernel.instruction + above,
        "collective": _collective(kernel.collective) if kernel.collective else None,
    }


def _collective(collective: Collective) -> Json:
    return {
        "kind": collective.kind,
        "bytes": collective.bytes,
        "axes": list(collective.axes),
        "groups": [list(group) for group in collective.groups],
        "inserted": collective.inserted,
        "async": collective.is_async,
        "scope": scope(collective),
    }


def _edge(edge: Edge) -> Json:
    return {
        "source": {"what": edge.source.what, "index": edge.source.index},
        "target": {"what": edge.target.what, "index": edge.target.index},
        "value": _value(edge.value),
    }


def _loop(loop: Loop) -> Json:
    return {
        "name": loop.name,
        "trips": loop.trips,
        "waits": loop.waits,
        "parent": loop.parent,
        "equation": loop.equation,
        "branch": loop.branch,
        "carried": [_value(value) for value in loop.carried],
    }


def _branch(branch: Branch) -> Json:
    return {
        "name": branch.name,
        "arm": branch.arm,
        "arms": branch.arms,
        "equation": branch.equation,
        "loop": branch.loop,
        "parent": branch.parent,
    }


def _temporary(temporary: Temporary) -> Json:
    return {
        "value": _value(temporary.value),
        "producer": temporary.producer,
        "consumers": list(temporary.consumers),
        "equation": temporary.equation,
    }


def _group(context: ClientContext, path: str, group: PanelGroup) -> Json:
    return {
        "title": group.title,
        "parent": group.parent,
        "place": _location(context, path, group.place),
    }


def _constant(constant: Constant) -> Json:
    return {"name": constant.name, "value": _value(constant.value), "folded": constant.folded}


def _equation(context: ClientContext, path: str, equation: PanelEquation) -> Json:
    return {
        "path": equation.path,
        "primitive": equation.primitive,
        "outputs": list(equation.outputs),
        "text": equation.text,
        "place": _location(context, path, equation.range),
        "divided": _divided(equation.divided) if equation.divided is not None else None,
        "scope": list(equation.scope),
        "backward": equation.backward,
    }


def _divided(divided: DividedResult) -> Json:
    return {
        "text": divided.text,
        "local": divided.local,
        "cells": [[list(cell) for cell in row] for row in divided.cells],
    }
