"""Generated documents: the whole jaxpr of a function, or its source in pure JAX.

Clients of LSP 3.18 open their URIs by themselves (`workspace/textDocumentContent`).
For the others there is the request `jaxsight/textDocumentContent` with `{"uri"}`, answered by
`{"text", "title", "stale", "links": [{"line", "path", "uri", "range"}]}`: a link goes from a line
of the text, which shows the equation `path`, to a range of a source document.
A line may have several links, and so may a range.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from jaxsight.features.caveats import commented
from jaxsight.features.model import Shown
from jaxsight.lsp.documents.uris import Made, uri_of
from jaxsight.text.inert import lines, visible
from jaxsight.wire.messages.tracing import STYLES

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

REQUEST = "jaxsight/textDocumentContent"
REFRESH = "jaxsight/textDocumentContentRefresh"
_REMEMBERED = 32
"""How many documents are refreshed; clients do not notify the server when they close one."""


async def content(
    server: JaxsightServer, params: types.TextDocumentContentParams
) -> types.TextDocumentContentResult:
    """Return the text of a generated document, for the standard's request."""
    shown = await _shown(server, params.uri)
    return types.TextDocumentContentResult(text=shown.text)


async def content_with_links(server: JaxsightServer, params: object) -> dict[str, Any]:
    """Return the text and its links, for our own request."""
    uri = params.get("uri") if isinstance(params, Mapping) else None
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams(f"{REQUEST} takes an object with a uri")
    shown = await _shown(server, uri)
    made = _made(uri)
    links = []
    for link in shown.links:
        view = server.documents.window(made.path, link.range) if link.range else None
        if view is not None and link.range is not None:
            where = server.converter.unstructure(view.to_range(link.range))
            links.append({"line": link.line, "path": link.path, "uri": view.uri, "range": where})
    return {"text": shown.text, "title": shown.title, "stale": shown.stale, "links": links}


async def _shown(server: JaxsightServer, uri: str) -> Shown:
    made = _made(uri)
    server.contents.asked(made)
    try:
        shown = await server.session.show(made.path, made.function, made.what)
        return readable(shown, made.kind)
    except LookupError as error:
        # Show the reason in the document: an editor would only say "could not be opened".
        return Shown(
            title=made.title,
            text="".join(f"# {line}\n" for line in lines(str(error))),
        )


def readable(shown: Shown, kind: str) -> Shown:
    """Return a document for an editor, with its caveats at the top.

    Source stays exact; in other documents, hidden characters are made visible.
    """
    text = shown.text if kind in STYLES else visible(shown.text)
    return commented(replace(shown, text=text), kind)


def _made(uri: str) -> Made:
    made = Made.parse(uri)
    if made is None:
        raise JsonRpcInvalidParams(f"{uri} is not a jaxsight document")
    return made


class Contents:
    """The generated documents that the client has requested, to notify it of changes.

    For clients that open only files, the documents are written to files.
    """

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self._asked: dict[Made, None] = {}
        self._folder: Path | None = None

    def asked(self, made: Made) -> None:
        """Remember that the client shows this document."""
        self._asked.pop(made, None)
        self._asked[made] = None
        while len(self._asked) > _REMEMBERED:
            del self._asked[next(iter(self._asked))]

    def refresh(self, path: str) -> None:
        """Notify the client of new answers about a file."""
        for made in [made for made in self._asked if made.path == path]:
            if self._server.client.asks_content:
                self._server.background(self._refresh(made), f"refreshing {made.uri()}")
            elif self._server.client.knows_us:
                self._server.protocol.notify(REFRESH, {"uri": made.uri()})

    async def put_in_file(self, made: Made, text: str) -> str:
        """Write the text to a file and return its URI, for clients that open only files."""
        return uri_of(str(await asyncio.to_thread(self._write, made, text)))

    def _write(self, made: Made, text: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="jaxsight-"))
        name = re.sub(r"[^\w.]", "_", f"{Path(made.path).stem}.{made.title}")
        file = self._folder / name
        file.write_text(text, encoding="utf-8")
        return file

    def remove_files(self) -> None:
        """Remove the files after the client has exited."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _refresh(self, made: Made) -> None:
        params = types.TextDocumentContentRefreshParams(uri=made.uri())
        try:
            await self._server.workspace_text_document_content_refresh_async(params)
        except JsonRpcException:
            self._asked.pop(made, None)


def register(server: JaxsightServer) -> None:
    """Serve generated documents by both requests."""
    server.answers(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, content)
    server.answers(REQUEST, content_with_links)
