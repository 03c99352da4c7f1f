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
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight.features import caveats
from jaxsight.features.panel import Drawn, Panel, Part
from jaxsight.lsp.documents.uris import PLAIN, Made
from jaxsight.source.text import Position, Range
from jaxsight.wire.kernel_graph import Branch, Constant, Edge, Graph, Kernel, Loop, Temporary, Value
from jaxsight.wire.messages.compiling import Compiled, Memory
from jaxsight.wire.messages.tracing import STYLES
from jaxsight.workers.compiler_environments import ready

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

REQUEST = "jaxsight/panel"
REFRESH = "jaxsight/panelRefresh"

Json = dict[str, Any]


async def panel(server: JaxsightServer, params: object) -> Json | None:
    """Answer the request."""
    match params:
        case {"uri": str(uri), "function": str(function)}:
            position = None
        case {"uri": str(uri), "position": {"line": int(line), "character": int(character)}}:
            function, position = "", _position(line, character)
        case _:
            raise JsonRpcInvalidParams(f"{REQUEST} takes a uri and a position or a function")
    view = server.documents.view(uri)
    if view is None:
        return None
    server.panels.asked(view.path)
    where: Position | str = function if position is None else view.position(position)
    shown = await server.session.panel(view.path, where)
    return None if shown is None else await _answer(server, shown)


def _position(line: int, character: int) -> types.Position:
    try:
        return types.Position(line=line, character=character)
    except ValueError as error:
        raise JsonRpcInvalidParams(f"{REQUEST}: {error}") from error


async def _answer(server: JaxsightServer, shown: Panel) -> Json:
    targets = await to_thread(ready)
    if shown.target and shown.target not in targets:
        targets.insert(0, shown.target)
    documents = {kind: Made(shown.path, shown.function, kind).uri() for kind in (*PLAIN, *STYLES)}
    return {
        "function": shown.function,
        **(_place(server, shown.path, shown.range) or {"uri": "", "range": None}),
        "set": shown.chosen,
        "sets": list(shown.sets),
        "target": shown.target,
        "targets": targets,
        "stale": shown.stale,
        "trouble": shown.trouble,
        "documents": documents,
        "drawn": _drawn(server, shown, shown.drawn) if shown.drawn is not None else None,
        **caveats.record(shown.caveats),
    }


def _place(server: JaxsightServer, path: str, where: Range | None) -> Json | None:
    view = server.documents.window(path, where) if where is not None else None
    if view is None or where is None:
        return None
    return {"uri": view.uri, "range": server.converter.unstructure(view.to_range(where))}


def _drawn(server: JaxsightServer, shown: Panel, drawn: Drawn) -> Json:
    graph = drawn.compiled.graph
    above = len(caveats.comment_lines(shown.caveats, "hlo")) + shown.stale
    return {
        **_figures(drawn.compiled),
        "headline": " · ".join([drawn.headline, *caveats.marks(shown.caveats)]),
        "device": drawn.device,
        "kernels": [
            {**_kernel(kernel, graph, above), "endsBecause": reason, "seconds": seconds}
            for kernel, reason, seconds in zip(
                graph.kernels, drawn.reasons, drawn.seconds, strict=True
            )
        ],
        "edges": [_edge(each) for each in graph.edges],
        "loops": [_loop(each) for each in graph.loops],
        "branches": [_branch(each) for each in graph.branches],
        "parameters": [_value(each) for each in graph.parameters],
        "outputs": [_value(each) for each in graph.outputs],
        "temporaries": [_temporary(each) for each in graph.temporaries],
        "constants": [_constant(each) for each in graph.constants],
        "equations": [_equation(server, shown.path, each) for each in drawn.equations],
        "notes": [
            *caveats.lines(shown.caveats),
            *drawn.notes,
            *drawn.compiled.notes,
            *graph.notes,
        ],
        "change": drawn.change,
        "before": _before(drawn.before) if drawn.before is not None else None,
    }


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    return {
        "launches": graph.launch_count,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": _memory(compiled.memory),
    }


def _before(compiled: Compiled) -> Json:
    graph = compiled.graph
    return {
        **_figures(compiled),
        "kernels": [
            {**_kernel(each, graph), "endsBecause": each.ends_because} for each in graph.kernels
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
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "what": kernel.what,
        "equations": list(kernel.equations),
        "endsAt": kernel.ends_at,
        "feeds": list(kernel.feeds),
        "inputs": [_value(each) for each in kernel.inputs],
        "outputs": [_value(each) for each in kernel.outputs],
        "flops": kernel.flops,
        "loops": list(kernel.loops),
        "branch": kernel.branch,
        "launches": kernel.launches,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": all(graph.loops[index].trips is not None for index in kernel.loops),
        "recomputes": list(kernel.recomputes),
        "line": kernel.instruction + above,
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
        "carried": [_value(each) for each in loop.carried],
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
    }


def _constant(constant: Constant) -> Json:
    return {"name": constant.name, "value": _value(constant.value), "folded": constant.folded}


def _equation(server: JaxsightServer, path: str, part: Part) -> Json:
    return {
        "path": part.path,
        "primitive": part.primitive,
        "outputs": list(part.outputs),
        "text": part.text,
        "place": _place(server, path, part.range),
    }


class Panels:
    """The files that the client's panels show, to notify it of new answers."""

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self._asked: set[str] = set()

    def asked(self, path: str) -> None:
        """Remember that a panel shows this file."""
        self._asked.add(path)

    def refresh(self, path: str) -> None:
        """Notify the client once that there are new answers about a file.

        A panel that still shows it sends a new request.
        """
        if path in self._asked:
            self._asked.discard(path)
            for view in self._server.documents.views(path)[:1]:
                self._server.protocol.notify(REFRESH, {"uri": view.uri})


def register(server: JaxsightServer) -> None:
    """Serve panels."""
    server.answers(REQUEST, panel)
