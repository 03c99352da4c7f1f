"""Messages as JSON: read from bytes, checked, and written with their headers."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

# LSP 3.18, `ErrorCodes`
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
SERVER_NOT_INITIALIZED = -32002


JsonObject: TypeAlias = dict[str, Any]
"""A message, or a part of one, before it is checked, or as it is written."""


class MalformedMessage(Exception):
    """The input is not a message, or not valid in the current state; `response` is the answer."""

    def __init__(self, code: int, message: str, id: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id

    @property
    def response(self) -> JsonObject:
        """The answer, as JSON."""
        error = {"code": self.code, "message": str(self)}
        return {"jsonrpc": "2.0", "id": self.id, "error": error}


def decode(body: bytes) -> JsonObject:
    """Return a message as JSON: an answer, or a message with valid `jsonrpc`, `id` and `method`.

    Raises:
        Malformed: `body` is neither.
    """
    try:
        message = json.loads(body.decode())
    except ValueError as error:
        raise MalformedMessage(PARSE_ERROR, f"invalid JSON: {error}") from error
    except RecursionError as error:
        raise MalformedMessage(PARSE_ERROR, "invalid JSON: nested too deeply") from error
    if not isinstance(message, dict):
        kind = "a batch" if isinstance(message, list) else "no object"
        raise MalformedMessage(INVALID_REQUEST, f"expected a JSON object, got {kind}")
    if "method" not in message and ("result" in message or "error" in message):
        return message
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, int | str | None):
        raise MalformedMessage(INVALID_REQUEST, "`id` must be an integer or a string")
    if id is None and "id" in message:
        raise MalformedMessage(INVALID_REQUEST, "`id` must not be null")
    if message.get("jsonrpc") != "2.0":
        raise MalformedMessage(INVALID_REQUEST, '`jsonrpc` must be "2.0"', id)
    if not isinstance(message.get("method"), str):
        raise MalformedMessage(INVALID_REQUEST, "`method` must be a string", id)
    return message


def frame(message: dict[str, object]) -> bytes:
    """Return a message with its headers."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
