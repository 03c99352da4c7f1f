"""`jaxsight.openPanel`: the panel as a page in a browser, which follows the editor's cursor.

The page is `jaxsight.page`. It gets its messages as server-sent events, and posts its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
from http import HTTPStatus

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight import page
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.cursors import Cursor
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.panel_page.following import FollowingPanel, Known
from jaxsight.lsp.features.panel_page.http_server import (
    EventChunks,
    LocalServer,
    PageRequest,
    PageResponse,
    RefusedRequest,
)
from jaxsight.lsp.features.runs.measuring import MeasureCommand
from jaxsight.lsp.features.targets import Targets
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.transport.messages import JsonObject

log = logging.getLogger(__name__)

_ALIVE = 15.0
"""Seconds without an event after which a comment is sent, as the HTML standard advises."""
_MOST_WAITING = 64
"""Messages that wait for a page, a choice; one that is further behind gets the state anew."""

Waiting = asyncio.Queue[JsonObject | None]


class PanelPages:
    """The pages of one connection, and the editor as they see it."""

    def __init__(
        self,
        context: ClientContext,
        panels: Panels,
        virtual_documents: VirtualDocuments,
        targets: Targets,
        measuring: MeasureCommand,
    ) -> None:
        self._context = context
        self._panel = FollowingPanel(
            context, panels, virtual_documents, targets, measuring, self._send
        )
        self._pages: list[Waiting] = []
        self._server = LocalServer(self._answer)
        context.cursors.moved = self._moved

    async def open(self, path: str = "", function: str = "") -> JsonObject:
        """Open the page (`jaxsight.openPanel [FILE FUNCTION]`).

        Returns `url`, which works once, and `opened`: whether the client has opened it. A client
        that has not, and does not know us, may not look at the answer: a message has the URL.
        """
        await asyncio.to_thread(page.template)
        views = self._context.documents.views(path)
        if views and function:
            self._panel.show(Known(views[0].uri, function))
        url = await self._server.link()
        opened = await self._opened(url)
        if not opened and not self._context.client.knows_us:
            message = f"Open the panel in a browser: {url}"
            self._context.show_message(types.MessageType.Info, message)
        return {"url": url, "opened": opened}

    async def _opened(self, url: str) -> bool:
        """Ask the client to open a URL, if it can."""
        if not self._context.client.shows_documents:
            return False
        params = types.ShowDocumentParams(uri=url, external=True, take_focus=True)
        try:
            shown = await self._context.connection.window_show_document_async(params)
        except JsonRpcException as error:
            log.warning("client failed to open the panel's page: %s", error)
            return False
        return shown.success

    def refresh(self, path: str) -> None:
        """Show new answers about a file."""
        if self._pages:
            self._panel.refreshed(lambda uri: self._context.path(uri) == path)

    def close(self) -> None:
        """Stop serving pages, which then say so."""
        self._server.close()
        for waiting in self._pages:
            _end(waiting)

    def _moved(self, cursor: Cursor) -> None:
        if self._pages and self._panel.cursor == cursor:
            self._panel.moved(cursor)

    def _send(self, message: JsonObject) -> None:
        for waiting in self._pages:
            if waiting.full():
                _end(waiting)
            else:
                waiting.put_nowait(message)

    async def _answer(self, request: PageRequest) -> PageResponse:
        match request:
            case PageRequest("GET", "/"):
                headers = {
                    "Content-Type": "text/html; charset=utf-8",
                    # The page's own policy is stricter; that of frames counts in headers only.
                    "Content-Security-Policy": "frame-ancestors 'none'",
                }
                return PageResponse(await asyncio.to_thread(_page), headers=headers)
            case PageRequest("GET", "/events"):
                return PageResponse(events=self._events())
            case PageRequest("POST", "/messages", body):
                try:
                    self._panel.hear(json.loads(body))
                except (ValueError, RecursionError) as error:
                    raise RefusedRequest(HTTPStatus.BAD_REQUEST) from error
                return PageResponse(status=HTTPStatus.NO_CONTENT)
        raise RefusedRequest(HTTPStatus.NOT_FOUND)

    async def _events(self) -> EventChunks:
        """Send what the pages are sent, until this one leaves or is too far behind."""
        waiting = Waiting(_MOST_WAITING)
        self._pages.append(waiting)
        try:
            while True:
                try:
                    message = await asyncio.wait_for(waiting.get(), _ALIVE)
                except TimeoutError:
                    yield b":\n\n"
                    continue
                if message is None:
                    return
                yield await asyncio.to_thread(_event, message)
        finally:
            self._pages.remove(waiting)
            if not self._pages:
                self._panel.rest()


def _end(waiting: Waiting) -> None:
    while not waiting.empty():
        waiting.get_nowait()
    waiting.put_nowait(None)


def _page() -> bytes:
    return page.served().encode()


def _event(message: JsonObject) -> bytes:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return b"data: %b\n\n" % text.encode("utf-8", "backslashreplace")
