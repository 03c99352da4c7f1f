"""A client in the test's own process: it speaks the protocol in bytes and keeps whatever the server
sends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jaxsight.lsp.server import EarlyEngine, serve
from tests.lsp.fake_session import FakeSession

CLIENTS = Path(__file__).parent / "clients"
PATIENCE = 120
"""Seconds after which a test gives up."""

Answer = Callable[[Any], Any]


def recorded(name: str) -> dict[str, Any]:
    """What a real client sends: the parameters of `initialize`, then its first messages.

    It was recorded, unless `origin` says which source it was written after.
    """
    recording: dict[str, Any] = json.loads((CLIENTS / f"{name}.json").read_text())
    return recording


class ResponseError(Exception):
    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]


class Client:
    """One connection."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._number = 0
        self._buffer = b""
        self._waiting: dict[int | str, asyncio.Future[Any]] = {}
        self._news = asyncio.Condition()
        self.notifications: list[tuple[str, Any]] = []
        self.requests: list[tuple[str, Any]] = []
        self.answers: dict[str, Answer] = {
            "workspace/configuration": lambda params: [None for _ in params["items"]]
        }
        """What to answer the server's requests with; `null` by default."""
        self.capabilities: dict[str, Any] = {}

    def post(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._send(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any = None) -> None:
        self.post({"method": method, "params": params})

    def begin(
        self, method: str, params: Any = None, number: int | str | None = None
    ) -> asyncio.Future[Any]:
        """Send a request; the future is its answer."""
        self._number += 1
        number = f"test-{self._number}" if number is None else number
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.post({"id": number, "method": method, "params": params})
        return future

    async def request(self, method: str, params: Any = None) -> Any:
        return await asyncio.wait_for(self.begin(method, params), PATIENCE)

    async def initialize(self, params: Mapping[str, Any], **changes: Any) -> Any:
        """Introduce a client; `changes` replace parameters."""
        introduction = await self.request("initialize", {**params, **changes})
        self.capabilities = introduction["capabilities"]
        self.notify("initialized", {})
        return introduction

    async def heard(self, method: str, count: int = 1) -> list[Any]:
        """The parameters of the first `count` notifications or requests of a method, once they have
        come.
        """

        def found() -> list[Any]:
            return [p for m, p in [*self.notifications, *self.requests] if m == method]

        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: len(found()) >= count)
        return found()

    async def settled(self) -> None:
        """All that was sent before has been handled."""
        await self.request("workspace/executeCommand", {"command": "jaxsight.info"})

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def edit(self, uri: str, version: int, *changes: Mapping[str, Any]) -> None:
        document = {"uri": uri, "version": version}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.notify("textDocument/didChange", params)

    async def feed(self, data: bytes) -> None:
        """Bytes came from the server."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, body = self._buffer.partition(b"\r\n\r\n")
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
            length = int(fields[b"Content-Length"])
            if len(body) < length:
                return
            self._buffer = body[length:]
            await self._receive(json.loads(body[:length]))

    async def _receive(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            waiting = self._waiting.pop(message["id"])
            if "error" in message:
                waiting.set_exception(ResponseError(message["error"]))
            else:
                waiting.set_result(message["result"])
            return
        method, params = message["method"], message.get("params")
        async with self._news:
            if "id" in message:
                self.requests.append((method, params))
                answer = self.answers.get(method)
                try:
                    reply = {"result": answer(params) if answer else None}
                except ResponseError as refusal:
                    reply = {"error": {"code": refusal.code, "message": str(refusal)}}
                self.post({"id": message["id"], **reply})
            else:
                self.notifications.append((method, params))
            self._news.notify_all()


async def listen(stream: asyncio.StreamReader | None, client: Client) -> None:
    """Give a client what a server's process writes."""
    assert stream is not None
    while data := await stream.read(65536):
        await client.feed(data)


class _Outbox:
    """The server's end of the stream to the client."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: bytes) -> None:
        self.sent.put_nowait(data)

    def close(self) -> None:
        """Nothing is left over: writing is immediate."""


class Ready:
    """An engine whose session is there."""

    def __init__(self, session: FakeSession) -> None:
        self._session = session
        self.closed = False

    def session(self) -> FakeSession:
        return self._session

    async def aclose(self) -> None:
        self.closed = True


@asynccontextmanager
async def connected(engine: Ready | None = None) -> AsyncIterator[Client]:
    """A server for an engine (the real one by default) and a client that talks to it; both end with
    the block.
    """
    factory = EarlyEngine if engine is None else lambda configuration: engine
    to_server = asyncio.StreamReader()
    outbox = _Outbox()
    client = Client(to_server.feed_data)

    async def deliver() -> None:
        while True:
            await client.feed(await outbox.sent.get())

    serving = asyncio.create_task(serve(to_server, outbox, factory))
    delivering = asyncio.create_task(deliver())
    try:
        yield client
    finally:
        to_server.feed_eof()
        await asyncio.wait_for(serving, PATIENCE)
        delivering.cancel()


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": at(line, start), "end": at(line, end)}


def on(uri: str, line: int, character: int) -> dict[str, Any]:
    """Parameters that name a document and a position."""
    return {"textDocument": {"uri": uri}, "position": at(line, character)}
