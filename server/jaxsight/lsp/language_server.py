"""The language server: pygls' protocol with our changes, and the features of one connection.

The protocol answers malformed requests, and has no text synchronization of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from cattrs import transform_error
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from jaxsight import __version__
from jaxsight.lsp.client import ClientFeatures
from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.text import Units
from jaxsight.lsp.documents.virtual_uris import SCHEMES
from jaxsight.lsp.event_pump import EventPump
from jaxsight.lsp.features import code_actions, hover, in_text, workspace
from jaxsight.lsp.features.commands import Commands
from jaxsight.lsp.features.diagnostics import Diagnostics
from jaxsight.lsp.features.document_sync import NOTEBOOKS, DocumentSync
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.programs import registration
from jaxsight.lsp.features.programs.navigation import Navigation
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.progress import Statuses
from jaxsight.lsp.transport.streams import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    JsonObject,
    MalformedMessage,
    decode,
)
from jaxsight.timeline import mark

if TYPE_CHECKING:
    from cattrs import Converter

    from jaxsight.session import Session

log = logging.getLogger(__name__)

_LONGEST = 500
"""Characters of an error about a message, a choice: `cattrs` names each field that is wrong."""


def converter() -> Converter:
    """Return pygls' converter, which leaves the parameters of our own messages as JSON.

    (pygls converts them to named tuples, and loses keys that are not identifiers, such as URIs.)
    """
    json_converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (JsonRPCNotification, JsonRPCRequestMessage):
        json_converter.register_structure_hook(
            kind, lambda data, cls: cls(**{"params": None, **data})
        )
    return json_converter


_OWN_SYNC = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
"""What `features/document_sync.py` serves in place of pygls."""


class JaxsightProtocol(LanguageServerProtocol):
    """The protocol of one connection."""

    _server: JaxsightServer

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        for method in _OWN_SYNC:
            del self.fm.builtin_features[method]

    def receive(self, body: bytes) -> None:
        """Handle the body of a message; a malformed one is answered with an error."""
        try:
            self.take(decode(body))
        except MalformedMessage as error:
            self._send_data(error.response)
        except Exception:  # no message may prevent the next from being read
            log.exception("ignoring a message")

    def _handle_cancel_notification(self, msg_id: object) -> None:
        if isinstance(msg_id, int | str):  # the converter lets everything through
            super()._handle_cancel_notification(msg_id)

    def take(self, message: JsonObject) -> None:
        """Handle a message, as JSON.

        Raises:
            Malformed: it is invalid in the current state, or its parameters do not fit its method.
        """
        id, method = message.get("id"), message.get("method")
        if method is None:
            self._answered(id, message)
        elif id is not None and method != types.EXIT:
            self._check_request(id, method)
            self.handle_message(self._structured(message))
        elif not self._shutdown or method == types.EXIT:
            try:
                self.handle_message(self._structured(message))
            except MalformedMessage as error:
                log.warning("ignoring notification %s: %s", method, error)

    def _answered(self, id: object, message: JsonObject) -> None:
        """Handle the client's answer to a request of ours; ignore answers to unknown requests."""
        if not isinstance(id, int | str) or id not in self._result_types:
            log.warning("ignoring a response to unknown request %.100r", id)
            return
        try:
            structured = self._structured(message)
        except MalformedMessage as error:
            self._handle_response(id, None, types.ResponseError(error.code, str(error)))
        else:
            self.handle_message(structured)
        self._result_types.pop(id, None)

    def _structured(self, message: JsonObject) -> Any:
        """Convert a JSON message to its class.

        Raises:
            Malformed: its parameters do not fit its method.
        """
        id, method = message.get("id"), message.get("method")
        if method is not None:
            kind = self.get_message_type(method) or (
                JsonRPCNotification if id is None else JsonRPCRequestMessage
            )
        elif "error" in message:
            kind = types.ResponseErrorMessage
        else:
            kind = self._result_types[message["id"]] or JsonRPCResponseMessage
        try:
            return self._converter.structure(message, kind)
        except Exception as error:  # converters may raise any exception
            words = "; ".join(transform_error(error))
            raise MalformedMessage(
                INVALID_PARAMS, f"{method or 'answer'}: {words[:_LONGEST]}", id
            ) from error

    def _check_request(self, id: int | str, method: str) -> None:
        if self._shutdown:
            raise MalformedMessage(INVALID_REQUEST, "the server is shut down", id)
        if method == types.INITIALIZE and self._workspace is not None:
            raise MalformedMessage(INVALID_REQUEST, "the server is already initialized", id)
        if id in self._request_futures:
            raise MalformedMessage(INVALID_REQUEST, f"request {id!r} is still in progress", id)
        message_types = types.METHOD_TO_TYPES.get(method)
        if message_types is not None and message_types[1] is None:
            raise MalformedMessage(
                INVALID_REQUEST, f"`{method}` is a notification and must not have an `id`", id
            )

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """Answer with the capabilities that this client can use."""
        context = self._server.context
        client = context.client = ClientFeatures.of(params.capabilities, params.client_info)
        introduction = yield from super().lsp_initialize(params)
        capabilities = introduction.capabilities
        opted_in = client.knows_us or context.configuration.programs
        registration.limit(capabilities, client, opted_in=opted_in)
        if not client.pulls_diagnostics:
            capabilities.diagnostic_provider = None
        if client.asks_content and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=list(SCHEMES)
            )
        # pygls selects the first encoding of the client's that it supports, else its own default.
        encoding = types.PositionEncodingKind(capabilities.position_encoding).value
        self._server.start_session(encoding)
        return introduction

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: object) -> None:  # type: ignore[override]  # no generator is needed
        """Cancel all other requests; a cancelled command is removed from them at once."""
        for id, future in list(self._request_futures.items()):
            if id != self.msg_id and not future.done():
                future.cancel()
        self._shutdown = True

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: object) -> None:  # type: ignore[override]  # no generator is needed
        """Stop reading; the process exits with 0 after a `shutdown`, else with 1."""
        self._server.exit_code = 0 if self._shutdown else 1


class JaxsightServer(LanguageServer):
    """A connection to a client, with the engine that serves it."""

    protocol: JaxsightProtocol

    def __init__(self, make_session: Callable[[], Session], configuration: Configuration) -> None:
        """Create a connection; `make_session` is called once `initialize` has been answered."""
        json_converter = converter()
        super().__init__(
            "jaxsight",
            __version__,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=JaxsightProtocol,
            converter_factory=lambda: json_converter,
        )
        self._make_session = make_session
        self.context = context = ClientContext(self, json_converter, configuration)
        diagnostics = Diagnostics(context)
        self._virtual_documents = documents = VirtualDocuments(context)
        panels = Panels(context)
        statuses = Statuses(context)
        commands = Commands(context, documents, statuses, panels)
        self._pages = commands.pages
        self._event_pump = EventPump(context, diagnostics, documents, panels, self._pages, statuses)
        self.attend: Callable[[], None] = lambda: None
        """Called with each message; lets background work wait once there is a session."""
        self.exit_code: int | None = None
        """Set once no more messages are read; requests in progress are dropped."""
        for module in (in_text, code_actions, workspace):
            module.register(context)
        context.serve(types.TEXT_DOCUMENT_HOVER, partial(hover.answer, context, diagnostics))
        sync = DocumentSync(context, diagnostics, documents)
        for feature in (diagnostics, sync, documents, Navigation(context, documents)):
            feature.register()
        panels.register()
        commands.register()

    def report_server_error(self, error: Exception, source: object) -> None:
        """Log errors that occur outside of requests; never show them as pop-ups."""
        log.error("%s", getattr(source, "__name__", source), exc_info=error)

    def start_session(self, encoding: str) -> None:
        """Set the position encoding, and start the engine after the answer has been sent."""
        mark("initialize answered")
        documents = self.context.documents
        documents.units = Units(encoding)
        documents.home = (self.context.configuration.roots or [""])[0]
        asyncio.get_running_loop().call_soon(self._start_engine)

    def _start_engine(self) -> None:
        context = self.context
        try:
            context.session = self._make_session()
            self.attend = context.session.attend
            context.apply_configuration()
        except Exception:
            log.exception("failed to start the engine")
            message = "jaxsight failed to start; see the log for details"
            context.show_message(types.MessageType.Error, message)
            self.exit_code = 1
            return
        context.start(self._event_pump.run(), "passing on events")

    def end_background(self) -> None:
        """Cancel background tasks and remove generated files, as the connection has ended."""
        self._pages.close()
        self.context.cancel_tasks()
        self._virtual_documents.remove_files()
