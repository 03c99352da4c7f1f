"""pygls' protocol, with answers to malformed requests and without its text synchronization."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

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

from jaxsight.lsp.client import ClientFeatures
from jaxsight.lsp.documents.virtual_uris import SCHEMES
from jaxsight.lsp.transport.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    JsonObject,
    MalformedMessage,
    decode,
)

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.lsp.server import LanguageServer

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


class Host(Protocol):
    """The server of a connection, for its protocol."""

    @property
    def client(self) -> ClientFeatures: ...

    def read_capabilities(self, params: types.InitializeParams) -> None: ...

    def limit(self, capabilities: types.ServerCapabilities) -> None: ...

    def start_session(self, encoding: str) -> None: ...

    def stop(self, exit_code: int) -> None: ...


class JaxsightProtocol(LanguageServerProtocol):
    """The protocol of one connection."""

    host: Host
    """Set by the server, which constructs its protocol."""

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

    def when_cancelled(self, action: Callable[[], object]) -> None:
        """Call a function if the client cancels the request that is being handled.

        pygls cancels the handlers of requests, but not those of commands.
        """
        request = self.msg_id
        future = self._request_futures.get(request) if request is not None else None
        if future is not None:
            future.add_done_callback(lambda done: action() if done.cancelled() else None)

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
        self.host.read_capabilities(params)
        introduction = yield from super().lsp_initialize(params)
        capabilities = introduction.capabilities
        self.host.limit(capabilities)
        if not self.host.client.pulls_diagnostics:
            capabilities.diagnostic_provider = None
        if self.host.client.asks_content and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=list(SCHEMES)
            )
        # pygls selects the first encoding of the client's that it supports, else its own default.
        self.host.start_session(types.PositionEncodingKind(capabilities.position_encoding).value)
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
        self.host.stop(0 if self._shutdown else 1)
