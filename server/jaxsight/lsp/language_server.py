"""The language server: the features of one connection, put together, and its start and end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Event as ThreadEvent
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from jaxsight import __version__
from jaxsight.lsp.client import ClientFeatures
from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.text import Units
from jaxsight.lsp.features import code_actions, code_lens, completion, hover, inlay_hints, workspace
from jaxsight.lsp.features.commands import Commands
from jaxsight.lsp.features.diagnostics import Diagnostics
from jaxsight.lsp.features.document_sync import NOTEBOOKS, DocumentSync
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.programs import call_hierarchy, outline, registration, tokens
from jaxsight.lsp.features.programs.navigation import Navigation
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.notifications.event_pump import EventPump
from jaxsight.lsp.notifications.statuses import Statuses
from jaxsight.lsp.transport.protocol import JaxsightProtocol, converter
from jaxsight.timeline import mark

if TYPE_CHECKING:
    from jaxsight.lsp.start.early_engine import EngineAhead

log = logging.getLogger(__name__)

NAME = "jaxsight"


class JaxsightServer(LanguageServer):
    """A connection to a client, with the engine that serves it."""

    protocol: JaxsightProtocol

    def __init__(self, engine: EngineAhead, configuration: Configuration) -> None:
        json_converter = converter()
        super().__init__(
            NAME,
            __version__,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=JaxsightProtocol,
            converter_factory=lambda: json_converter,
        )
        self.protocol.host = self
        self._engine = engine
        self._context = context = ClientContext(self, json_converter, configuration)
        diagnostics = Diagnostics(context)
        self._virtual_documents = VirtualDocuments(context)
        panels = Panels(context)
        statuses = Statuses(context)
        commands = Commands(context, self._virtual_documents, statuses, panels)
        self._pages = commands.pages
        self._event_pump = EventPump(
            context, diagnostics, self._virtual_documents, panels, self._pages, statuses
        )
        self.attend: Callable[[], None] = lambda: None
        """Called with each message; lets background work wait once there is a session."""
        self.stopped = ThreadEvent()
        self.exit_code = 1
        for module in (inlay_hints, completion, code_lens, code_actions, workspace):
            module.register(context)
        hover.register(context, diagnostics)
        diagnostics.register()
        DocumentSync(context, diagnostics, self._virtual_documents).register()
        self._virtual_documents.register()
        Navigation(context, self._virtual_documents).register()
        outline.register(context)
        call_hierarchy.register(context)
        tokens.register(context)
        panels.register()
        commands.register()

    @property
    def client(self) -> ClientFeatures:
        """The client's capabilities."""
        return self._context.client

    def report_server_error(self, error: Exception, source: object) -> None:
        """Log errors that occur outside of requests; never show them as pop-ups."""
        log.error("%s", getattr(source, "__name__", source), exc_info=error)

    def read_capabilities(self, params: types.InitializeParams) -> None:
        """Read the client's capabilities."""
        self._context.client = ClientFeatures.of(params.capabilities, params.client_info)

    def limit(self, capabilities: types.ServerCapabilities) -> None:
        """Remove capabilities that this client does not get, or gets by registration."""
        context = self._context
        opted_in = context.client.knows_us or context.configuration.programs
        registration.limit(capabilities, context.client, opted_in=opted_in)

    def start_session(self, encoding: str) -> None:
        """Set the position encoding, and start the engine after the answer has been sent."""
        mark("initialize answered")
        context = self._context
        context.documents.units = Units(encoding)
        context.documents.home = (context.configuration.roots or [""])[0]
        asyncio.get_running_loop().call_soon(self._start_engine)

    def _start_engine(self) -> None:
        try:
            self._context.session = self._engine.session()
            self.attend = self._context.session.attend
            self._context.apply_configuration()
        except Exception:
            log.exception("failed to start the engine")
            message = "jaxsight failed to start; see the log for details"
            self._context.show_message(types.MessageType.Error, message)
            self.stop(1)
            return
        self._context.start(self._event_pump.run(), "passing on events")

    def stop(self, exit_code: int) -> None:
        """Stop reading messages; requests in progress are dropped."""
        self.exit_code = exit_code
        self.stopped.set()

    def end_background(self) -> None:
        """Cancel background tasks and remove generated files, as the connection has ended."""
        self._pages.close()
        self._context.cancel_tasks()
        self._virtual_documents.remove_files()
