"""pygls' protocol with our own documents, answers to malformed requests, and an orderly shutdown.

The documents that pygls stores are not used: edits are applied to `OpenDocuments`, at once and in
order, before any handler runs.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from cattrs import transform_error
from lsprotocol import types
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from jaxsight.lsp.documents import uris
from jaxsight.lsp.transport.streams import INVALID_PARAMS, INVALID_REQUEST, Malformed, decode

if TYPE_CHECKING:
    from cattrs import Converter

    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)


def converter() -> Converter:
    """Return pygls' converter, which leaves the parameters of our own messages as JSON.

    (pygls converts them to named tuples, and loses keys that are not identifiers, such as URIs.)
    """
    result: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (JsonRPCNotification, JsonRPCRequestMessage):
        result.register_structure_hook(kind, lambda data, cls: cls(**{"params": None, **data}))
    return result


class JaxsightProtocol(LanguageServerProtocol):
    """The protocol of one connection."""

    _server: JaxsightServer

    def receive(self, body: bytes) -> None:
        """Handle the body of a message; a malformed one is answered with an error."""
        try:
            self.take(decode(body))
        except Malformed as error:
            self._send_data(error.response)
        except Exception:  # no message may prevent the next from being read
            log.exception("ignoring a message")

    def _handle_cancel_notification(self, msg_id: object) -> None:
        if isinstance(msg_id, int | str):  # the converter lets everything through
            super()._handle_cancel_notification(msg_id)

    def take(self, message: dict[str, Any]) -> None:
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
            except Malformed as error:
                log.warning("ignoring notification %s: %s", method, error)

    def _answered(self, id: object, message: dict[str, Any]) -> None:
        """Handle the client's answer to a request of ours; ignore answers to unknown requests."""
        if not isinstance(id, int | str) or id not in self._result_types:
            log.warning("ignoring a response to unknown request %.100r", id)
            return
        try:
            structured = self._structured(message)
        except Malformed as error:
            self._handle_response(id, None, types.ResponseError(error.code, str(error)))
        else:
            self.handle_message(structured)
        self._result_types.pop(id, None)

    def _structured(self, message: dict[str, Any]) -> Any:
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
            raise Malformed(INVALID_PARAMS, f"{method or 'answer'}: {words[:500]}", id) from error

    def _check_request(self, id: int | str, method: str) -> None:
        if self._shutdown:
            raise Malformed(INVALID_REQUEST, "the server is shut down", id)
        if method == types.INITIALIZE and self._workspace is not None:
            raise Malformed(INVALID_REQUEST, "the server is already initialized", id)
        if id in self._request_futures:
            raise Malformed(INVALID_REQUEST, f"request {id!r} is still in progress", id)
        known = types.METHOD_TO_TYPES.get(method)
        if known is not None and known[1] is None:
            raise Malformed(
                INVALID_REQUEST, f"`{method}` is a notification and must not have an `id`", id
            )

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """Answer with the capabilities that this client can use."""
        self._server.meet(params)
        result = yield from super().lsp_initialize(params)
        capabilities = result.capabilities
        if not self._server.client.pulls_diagnostics:
            capabilities.diagnostic_provider = None
        if self._server.client.asks_content and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=list(uris.SCHEMES)
            )
        # pygls selects the first encoding of the client's that it supports, else its own default.
        self._server.begin(types.PositionEncodingKind(capabilities.position_encoding).value)
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: object) -> None:  # type: ignore[override]  # no generator is needed
        """Stop reading; the process exits with 0 after a `shutdown`, else with 1."""
        self._server.stop(0 if self._shutdown else 1)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Store the document and notify the engine."""
        item = params.text_document
        self._server.opened(item.uri, item.language_id, item.version, item.text)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply the edits and notify the engine."""
        self._server.changed(params.text_document, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Remove the document."""
        self._server.closed(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Store the cells and notify the engine."""
        self._server.notebook_opened(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        """Apply the changes of the cells and notify the engine."""
        self._server.notebook_changed(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: types.DidCloseNotebookDocumentParams
    ) -> None:
        """Remove the notebook."""
        self._server.notebook_closed(params.notebook_document.uri)
