"""pygls' protocol with our own documents, answers to malformed requests, and an orderly end.

What pygls keeps of documents is not used: edits go to `OpenDocuments`, at once and in order, before any handler runs.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from jaxsight.lsp import uris

if TYPE_CHECKING:
    from cattrs import Converter

    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)


def converter() -> Converter:
    """pygls' converter, but the parameters of messages of our own stay the JSON that they are.

    (pygls makes named tuples of them, and loses what is no identifier: URIs as keys.)
    """
    result: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (JsonRPCNotification, JsonRPCRequestMessage):
        result.register_structure_hook(kind, lambda data, cls: cls(**{"params": None, **data}))
    return result


class JaxsightProtocol(LanguageServerProtocol):
    """See the module's docstring."""

    _server: JaxsightServer

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as its class; a request whose parameters are malformed is answered so (pygls only logs it)."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and "id" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """Answer with what this client is served."""
        self._server.meet(params)
        result = yield from super().lsp_initialize(params)
        capabilities = result.capabilities
        if not self._server.client.pulls_diagnostics:
            capabilities.diagnostic_provider = None
        if self._server.client.asks_content and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=list(uris.SCHEMES)
            )
        # pygls picks the first that the client names and we know, else its own default.
        self._server.begin(types.PositionEncodingKind(capabilities.position_encoding).value)
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: object) -> None:  # type: ignore[override]  # no generator is needed
        """Stop reading; the process ends with 0 after a `shutdown`, else with 1."""
        self._server.stop(0 if self._shutdown else 1)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep the document and tell the engine."""
        item = params.text_document
        self._server.opened(item.uri, item.language_id, item.version, item.text)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply the edits and tell the engine."""
        self._server.changed(params.text_document, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget the document."""
        self._server.closed(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Keep the cells and tell the engine."""
        self._server.notebook_opened(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        """Apply what changed in the cells and tell the engine."""
        self._server.notebook_changed(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: types.DidCloseNotebookDocumentParams
    ) -> None:
        """Forget the notebook."""
        self._server.notebook_closed(params.notebook_document.uri)
