"""`jaxsight.openPanel`: the panel as a page in a browser, which follows the editor's cursor.

The page is `jaxsight.page`. It sends requests of the editor's own through a socket, and gets
notifications from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcMethodNotFound

from jaxsight import page
from jaxsight.features.code_actions import CHOOSE_SET
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.cursors import CURSOR, Cursor
from jaxsight.lsp.features import panel, virtual_documents
from jaxsight.lsp.features.runs import MEASURE
from jaxsight.lsp.features.targets import CHOOSE_TARGET
from jaxsight.lsp.transport.page_server import PageServer
from jaxsight.lsp.transport.streams import JsonObject

REVEAL = "jaxsight/reveal"
_COMMANDS = (CHOOSE_SET, CHOOSE_TARGET, MEASURE)
"""What a user can run from a panel."""


class PanelPages:
    """The pages of one connection, and the editor as they see it."""

    def __init__(
        self,
        context: ClientContext,
        panels: panel.Panels,
        documents: virtual_documents.VirtualDocuments,
    ) -> None:
        self._context = context
        # What each raises about its parameters is the answer; they are not all of the type said.
        self._handlers: dict[str, Callable[[JsonObject], Awaitable[object]]] = {
            panel.REQUEST: panels.panel,
            panel.SWEEP: panels.sweep,
            virtual_documents.REQUEST: documents.with_links,
            types.WORKSPACE_EXECUTE_COMMAND: self._execute,
            REVEAL: self._reveal,
        }
        self._server = PageServer(page.served, self._answer)
        context.cursors.moved = self._moved

    async def open(self, path: str = "", function: str = "") -> JsonObject:
        """Open the page (`jaxsight.openPanel [FILE FUNCTION]`).

        Returns `url`, which works once, and `opened`: whether the client has opened it. A client
        that has not, and does not know us, may not look at the answer: a message has the URL.
        """
        await asyncio.to_thread(page.template)
        context = self._context
        views = context.documents.windows(path) if function else ()
        asked = {"uri": views[0].uri, "function": function} if views else {}
        url = await self._server.link(urlencode(asked, errors="replace"))
        params = types.ShowDocumentParams(url, external=True, take_focus=True)
        opened = await context.show_document(params)
        if not opened and not context.client.knows_us:
            context.show_message(types.MessageType.Info, f"Open the panel in a browser: {url}")
        return {"url": url, "opened": opened}

    def refresh(self, path: str) -> None:
        """Notify the pages that there are new answers about a file."""
        for view in self._context.documents.windows(path)[:1]:
            self._server.notify({"method": panel.REFRESH, "params": {"uri": view.uri}})

    def close(self) -> None:
        """Stop serving pages, which then say so."""
        self._server.close()

    def _moved(self, cursor: Cursor) -> None:
        uri, line, character = cursor
        if self._context.documents.window_of(uri) is not None:
            position = {"line": line, "character": character}
            params = {"textDocument": {"uri": uri}, "position": position}
            self._server.last = {"method": CURSOR, "params": params}
            self._server.notify(self._server.last)

    async def _answer(self, method: str, params: JsonObject) -> object:
        """Answer a request of a page as one of the editor."""
        if (handler := self._handlers.get(method)) is None:
            raise JsonRpcMethodNotFound.of(method)
        return await handler(params)

    async def _execute(self, params: JsonObject) -> object:
        name, commands = params["command"], self._context.connection.protocol.fm.commands
        if name not in _COMMANDS:
            raise JsonRpcInvalidParams(f"a page runs {', '.join(_COMMANDS)}")
        return await commands[name](*params["arguments"])

    async def _reveal(self, params: JsonObject) -> None:
        """Show places of open documents in the editor; `focus`: go to the first.

        A client that highlights no places goes to the first at any rate.
        """
        context, focus = self._context, bool(params["focus"])
        structured = context.converter.structure(params["places"], list[types.Location])
        places = [
            place for place in structured if context.documents.window_of(place.uri) is not None
        ]
        if context.client.knows_us:
            sent = context.converter.unstructure(places)
            context.notify(REVEAL, {"places": sent, "focus": focus})
        if places and (focus or not context.client.knows_us):
            uri, at = places[0].uri, places[0].range.start
            shown = types.ShowDocumentParams(uri, take_focus=focus, selection=types.Range(at, at))
            await context.show_document(shown)
