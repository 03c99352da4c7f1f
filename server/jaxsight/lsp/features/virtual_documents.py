"""Virtual documents: the whole jaxpr of a function, or its source in pure JAX.

Clients of LSP 3.18 open their URIs by themselves (`workspace/textDocumentContent`).
For the others there is the request `jaxsight/textDocumentContent` with `{"uri"}`, answered by
`{"text", "title", "stale", "links": [{"line", "path", "uri", "range"}]}`: a link goes from a line
of the text, which shows the equation `path`, to a range of a source document.
A line may have several links, and so may a range.
Source of a program's file is linked to the file's lines, with empty paths.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from jaxsight.features.caveats import commented
from jaxsight.features.model import Linked, VirtualText
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.lsp.documents.virtual_uris import EXTENDED, VirtualDocument
from jaxsight.lsp.transport.streams import JsonObject
from jaxsight.text.inert import lines, visible
from jaxsight_source.options import STYLES

log = logging.getLogger(__name__)

REQUEST = "jaxsight/textDocumentContent"
REFRESH = "jaxsight/textDocumentContentRefresh"
_REMEMBERED = 32
"""How many documents are refreshed; clients do not notify the server when they close one.

Each costs a request of the client after an edit; of more that are open, the oldest are outdated.
"""

_REST = 0.5
"""Seconds without an edit after which documents about a program's file are refreshed, a choice:
each is read by a process that takes seconds."""


class VirtualDocuments:
    """Serves virtual documents by both requests, and notifies the client of changes.

    For clients that open only files, the documents are written to files.
    """

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._shown: dict[VirtualDocument, None] = {}
        self._folder: Path | None = None
        self._resting: dict[str, asyncio.TimerHandle] = {}
        """Refreshes of program files that wait for more edits."""

    def register(self) -> None:
        """Serve the requests."""
        self._context.serve(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, self._answer)
        self._context.serve(REQUEST, self.with_links)

    async def _answer(
        self, params: types.TextDocumentContentParams
    ) -> types.TextDocumentContentResult:
        """Answer the standard's request."""
        content = await self._content(_parsed(params.uri))
        return types.TextDocumentContentResult(text=content.text)

    async def with_links(self, params: object) -> JsonObject:
        """Answer our own request."""
        uri = params.get("uri") if isinstance(params, Mapping) else None
        if not isinstance(uri, str):
            raise JsonRpcInvalidParams(f"{REQUEST} takes an object with a uri")
        context, document = self._context, _parsed(uri)
        program = context.printed.text(document.path)
        content = await self._content(document)
        of_program = None
        if program is not None and program == context.printed.text(document.path):
            of_program = context.printed.window(document.path, context.documents.units)
        links = []
        for link in content.links:
            if link.range is None:
                continue
            view = of_program or context.documents.window(document.path, link.range)
            if view is not None:
                range = context.converter.unstructure(view.to_range(link.range))
                links.append(
                    {"line": link.line, "path": link.path, "uri": view.uri, "range": range}
                )
        known = {"text": content.text, "title": content.title, "stale": content.stale}
        return {**known, "links": links}

    async def _content(self, document: VirtualDocument) -> VirtualText:
        """Return the text and its links, and remember that the client shows the document."""
        self._shown.pop(document, None)
        self._shown[document] = None
        while len(self._shown) > _REMEMBERED:
            del self._shown[next(iter(self._shown))]
        try:
            return await self.compute(document)
        except LookupError as error:
            return explained(document, error)

    async def compute(self, document: VirtualDocument) -> VirtualText:
        """Return a document for an editor, with its caveats at the top.

        Source and documents of extensions stay exact; in others, hidden characters are made
        visible.

        Raises:
            LookupError: there is no such document.
        """
        content = await self._context.session.show(
            document.path,
            document.function,
            document.request,
            self._context.printed.text(document.path),
        )
        text = content.text if document.kind in (*STYLES, *EXTENDED) else visible(content.text)
        return commented(replace(content, text=text), document.kind)

    async def links(self, document: VirtualDocument, text: str) -> Sequence[Linked]:
        """Return the links of a document that the client shows as `text`.

        There are none if it has another text now.
        """
        try:
            content = await self.compute(document)
        except LookupError:
            return ()
        return content.links if content.text.rstrip("\n") == text.rstrip("\n") else ()

    def refresh(self, path: str) -> None:
        """Notify the client of new answers about a file."""
        for document in [document for document in self._shown if document.path == path]:
            if self._context.client.asks_content:
                self._context.start(self._refresh(document), f"refreshing {document.uri()}")
            elif self._context.client.knows_us:
                self._context.notify(REFRESH, {"uri": document.uri()})

    def edited(self, path: str) -> None:
        """Notify the client of new answers about a program's file, once it is not edited."""
        if (waiting := self._resting.pop(path, None)) is not None:
            waiting.cancel()
        if any(document.path == path for document in self._shown):
            loop = asyncio.get_running_loop()
            self._resting[path] = loop.call_later(_REST, self.refresh, path)

    async def _refresh(self, document: VirtualDocument) -> None:
        params = types.TextDocumentContentRefreshParams(uri=document.uri())
        try:
            await self._context.connection.workspace_text_document_content_refresh_async(params)
        except JsonRpcException:
            self._shown.pop(document, None)

    async def open(self, document: VirtualDocument, text: str, file: str = "") -> None:
        """Ask the client to open a document, if it can: as a file if it opens only files.

        Args:
            document: the document.
            text: its text.
            file: the file that has this text, if there is one.
        """
        context = self._context
        if not context.client.shows_documents:
            return
        uri = document.uri()
        if not (context.client.asks_content or context.client.knows_us):
            uri = uri_of(file or str(await asyncio.to_thread(self._write, document, text)))
        params = types.ShowDocumentParams(uri=uri, take_focus=True, selection=_begin(text))
        await context.show_document(params)

    def _write(self, document: VirtualDocument, text: str) -> Path:
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="jaxsight-"))
        name = re.sub(r"[^\w.]", "_", f"{Path(document.path).stem}.{document.title}")
        file = self._folder / name
        file.write_text(text, encoding="utf-8")
        return file

    def remove_files(self) -> None:
        """Remove the files after the client has exited."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def explained(document: VirtualDocument, error: LookupError) -> VirtualText:
    """Return a document with the reason why it cannot be shown, in comments.

    An editor would only say that it could not be opened, or cut a long reason.
    """
    text = "".join(f"# {line}\n" for line in lines(str(error)))
    return VirtualText(title=document.title, text=text)


def _begin(text: str) -> types.Range | None:
    """Return where a document is opened: HLO at its entry computation, which comes last."""
    lines = enumerate(text.split("\n"))
    begins = (types.Position(number, 0) for number, line in lines if line.startswith("ENTRY "))
    begin = next(begins, None)
    return None if begin is None else types.Range(begin, begin)


def _parsed(uri: str) -> VirtualDocument:
    document = VirtualDocument.parse(uri)
    if document is None:
        raise JsonRpcInvalidParams(f"{uri} is not a jaxsight document")
    return document
