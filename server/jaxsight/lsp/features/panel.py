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
from dataclasses import asdict

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight.features.model import Panel
from jaxsight.features.panel import record
from jaxsight.figures.panel import Json
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.virtual_uris import PLAIN, VirtualDocument
from jaxsight.source.text import Range
from jaxsight.workers.compilation.environments import ready
from jaxsight_source.options import STYLES

REQUEST = "jaxsight/panel"
REFRESH = "jaxsight/panelRefresh"
SWEEP = "jaxsight/sweep"


class Panels:
    """Answers the request, and notifies the client of new answers about files that panels show."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._shown: set[str] = set()
        """Paths of files that panels show."""

    def register(self) -> None:
        """Serve panels."""
        self._context.serve(REQUEST, self._answer)
        self._context.serve(SWEEP, self.sweep)

    async def _answer(self, params: object) -> Json | None:
        match params:
            case {"uri": str(uri)} if (view := self._context.documents.window_of(uri)) is not None:
                self._shown.add(view.path)
        return await self.panel(params)

    async def panel(self, params: object) -> Json | None:
        """Return the answer, of which the client is not notified when it changes."""
        match params:
            case {"uri": str(uri), "function": str(function)}:
                at: types.Position | str = function
            case {"uri": str(uri), "position": {"line": int(line), "character": int(character)}}:
                try:
                    at = types.Position(line, character)
                except ValueError as error:
                    raise JsonRpcInvalidParams(f"{REQUEST}: {error}") from error
            case _:
                raise JsonRpcInvalidParams(f"{REQUEST} takes a uri and a position or a function")
        view = self._context.documents.window_of(uri)
        if view is None:
            return None
        where = at if isinstance(at, str) else view.position(at)
        panel = await self._context.session.panel(view.path, where)
        return None if panel is None else await _panel(self._context, panel)

    async def sweep(self, params: object) -> Json | None:
        """Return curves and a table of a function's figures by its sizes."""
        match params:
            case {"uri": str(uri), "function": str(function), "sizes": str(sizes), **others}:
                figure = str(others.get("figure", "temp"))
            case _:
                raise JsonRpcInvalidParams(f"{SWEEP} takes a uri, a function and sizes")
        from jaxsight.sweeps.table import FIGURES

        if figure not in FIGURES:
            raise JsonRpcInvalidParams(f"{SWEEP}: the figure is one of {', '.join(FIGURES)}")
        view = self._context.documents.window_of(uri)
        if view is None:
            return None
        session = self._context.session
        return asdict(await session.drawn_sweep(view.path, function, sizes.split(), figure))

    def refresh(self, path: str) -> None:
        """Notify the client once that there are new answers about a file.

        A panel that still shows it sends a new request.
        """
        if path in self._shown:
            self._shown.discard(path)
            for view in self._context.documents.windows(path)[:1]:
                self._context.notify(REFRESH, {"uri": view.uri})


async def _panel(context: ClientContext, panel: Panel) -> Json:
    targets = await to_thread(ready)
    if panel.target and panel.target not in targets:
        targets.insert(0, panel.target)
    documents = {
        kind: VirtualDocument(panel.path, panel.function, kind).uri() for kind in (*PLAIN, *STYLES)
    }
    return record(panel, lambda range: _location(context, panel.path, range), targets, documents)


def _location(context: ClientContext, path: str, range: Range | None) -> Json | None:
    view = context.documents.window(path, range) if range is not None else None
    if view is None or range is None:
        return None
    return {"uri": view.uri, "range": context.converter.unstructure(view.to_range(range))}
