"""The language server: its state, and the forwarding of documents to the engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from threading import Event as ThreadEvent
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from jaxsight import __version__
from jaxsight.lsp.client import Client
from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.notebooks import Notebook
from jaxsight.lsp.documents.registry import OpenDocuments
from jaxsight.lsp.documents.units import Units
from jaxsight.lsp.engine_protocol import Engine, Service
from jaxsight.lsp.features import (
    code_actions,
    code_lens,
    commands,
    completion,
    diagnostics,
    hover,
    inlay_hints,
    panel,
    workspace,
)
from jaxsight.lsp.features import virtual_documents as text_documents
from jaxsight.lsp.notifications import event_pump as events
from jaxsight.lsp.notifications.progress import ProgressBars
from jaxsight.lsp.notifications.refresh import Refresher
from jaxsight.lsp.transport.protocol import JaxsightProtocol, converter
from jaxsight.text.inert import block

log = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

NAME = "jaxsight"

_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ]
)


class JaxsightServer(LanguageServer):
    """A connection to a client, with the engine that serves it."""

    protocol: JaxsightProtocol

    session: Service
    """Set after `initialize` has been answered, before the next message is read."""

    def __init__(self, engine: Engine, configuration: Configuration) -> None:
        self.converter = converter()
        super().__init__(
            NAME,
            __version__,
            notebook_document_sync=_NOTEBOOKS,
            protocol_cls=JaxsightProtocol,
            converter_factory=lambda: self.converter,
        )
        self._engine = engine
        self.configuration = configuration
        self.client = Client()
        self.documents = OpenDocuments(Units())
        self.refresher = Refresher(self)
        self.progress_bars = ProgressBars(self)
        self.publisher = diagnostics.Publisher(self)
        self.contents = text_documents.Contents(self)
        self.panels = panel.Panels(self)
        self.statuses = events.Statuses(self)
        self.stopped = ThreadEvent()
        self.exit_code = 1
        self._tasks: set[asyncio.Task[None]] = set()
        for feature in (
            hover,
            inlay_hints,
            diagnostics,
            completion,
            code_lens,
            code_actions,
            text_documents,
            panel,
            commands,
            workspace,
        ):
            feature.register(self)

    def answers(
        self,
        method: str,
        handler: Callable[[JaxsightServer, P], Awaitable[R]],
        options: object = None,
    ) -> None:
        """Serve a request or a notification.

        An internal error is logged and answered with null: clients show errors of requests, and
        some of these are sent with each movement of the mouse.
        """

        async def answer(params: P) -> R | None:
            try:
                return await handler(self, params)
            except JsonRpcException:
                raise  # meant as an answer
            except Exception:
                log.exception("%s failed", method)
                self.tell_log(types.MessageType.Error, f"{method} failed; see the log for details")
                return None

        self.feature(method, options)(answer)

    def background(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """Run a coroutine that nobody awaits; log its errors."""

        task = asyncio.get_running_loop().create_task(work, name=what)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    def tell_log(self, kind: types.MessageType, message: str) -> None:
        """Write a line to the client's log of this server."""
        self.window_log_message(types.LogMessageParams(type=kind, message=block(message)))

    def tell_person(self, kind: types.MessageType, message: str) -> None:
        """Show a message as a pop-up."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=notice(message)))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log errors that occur outside of requests; never show them as pop-ups."""
        log.error("%s", getattr(source, "__name__", source), exc_info=error)

    def meet(self, params: types.InitializeParams) -> None:
        """Read the client's capabilities."""
        self.client = Client.of(params.capabilities, params.client_info)

    def begin(self, encoding: str) -> None:
        """Set the position encoding, and start the engine after the answer has been sent."""
        self.documents.units = Units(encoding)
        self.documents.home = (self.configuration.roots or [""])[0]
        asyncio.get_running_loop().call_soon(self._begin_engine)

    def _begin_engine(self) -> None:
        try:
            self.session = self._engine.session()
            self.configuration.apply(self.session)
        except Exception:
            log.exception("failed to start the engine")
            message = "jaxsight failed to start; see the log for details"
            self.tell_person(types.MessageType.Error, message)
            self.stop(1)
            return
        self.background(events.pump(self), "passing on events")

    def configured(self) -> None:
        """Apply changed folders, settings, trust or Python environments."""
        self.documents.home = (self.configuration.roots or [""])[0]
        self.configuration.apply(self.session)

    def stop(self, exit_code: int) -> None:
        """Stop reading messages; requests in progress are dropped."""
        self.exit_code = exit_code
        self.stopped.set()

    def end_background(self) -> None:
        """Cancel background tasks and remove generated files, as the connection has ended."""
        for task in list(self._tasks):
            task.cancel()
        self.contents.remove_files()

    def opened(self, uri: str, language: str, version: int, text: str) -> None:
        """Open a text document."""
        document = self.documents.open(uri, language, version, text)
        if document is not None:
            self.session.open(document.path, text)
            self.publisher.schedule(document.path)

    def changed(
        self,
        identifier: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Apply edits to a text document."""
        document = self.documents.get(identifier.uri)
        if document is None:
            return
        document.apply(changes, identifier.version, self.documents.units)
        self.session.change(document.path, document.text)
        self.publisher.schedule(document.path)

    def closed(self, uri: str) -> None:
        """Close a text document."""
        document = self.documents.close(uri)
        if document is not None:
            self.session.close(document.path)
            self.publisher.clear(document.path, [document.uri])

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Open a notebook."""
        notebook = self.documents.open_notebook(params.notebook_document.uri)
        if notebook is None:
            return
        notebook.splice(0, 0, params.notebook_document.cells)
        for item in params.cell_text_documents:
            notebook.open(item)
        self.documents.recount(notebook)
        self.session.open(notebook.path, notebook.text)
        self.publisher.schedule(notebook.path)

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply edits to cells, and add, move or remove them."""
        notebook = self.documents.notebook(params.notebook_document.uri)
        cells = params.change.cells
        if notebook is None or cells is None:
            return
        if (structure := cells.structure) is not None:
            self._restructure(notebook, structure)
        for content in cells.text_content or ():
            notebook.edit(content.document, content.changes, self.documents.units)
        self.session.change(notebook.path, notebook.text)
        self.publisher.schedule(notebook.path)

    def _restructure(
        self, notebook: Notebook, structure: types.NotebookDocumentCellChangeStructure
    ) -> None:
        array = structure.array
        notebook.splice(array.start, array.delete_count, array.cells or ())
        for gone in structure.did_close or ():
            notebook.close(gone.uri)
            self.publisher.clear(notebook.path, [gone.uri])
        for item in structure.did_open or ():
            notebook.open(item)
        self.documents.recount(notebook)

    def notebook_closed(self, uri: str) -> None:
        """Close a notebook."""
        notebook = self.documents.close_notebook(uri)
        if notebook is not None:
            self.session.close(notebook.path)
            cells = [view.uri for view in notebook.views(self.documents.units)]
            self.publisher.clear(notebook.path, cells)
