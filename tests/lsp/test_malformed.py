"""What is not a message, or not one for now, is answered so, and the next one is understood."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.server import EngineFactory, serve
from tests.lsp.client import PATIENCE, Client, Ready, ResponseError, on, recorded
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
NOT_INITIALIZED = -32002


class Wire:
    """A connection whose bytes the test writes itself."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self.write = stream.feed_data
        self.end = stream.feed_eof
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def sent(self, data: bytes) -> None:
        self._sent.put_nowait(json.loads(data.partition(b"\r\n\r\n")[2]))

    def post(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def answer(self, id: object) -> dict[str, Any]:
        """The next answer to `id`."""
        async with asyncio.timeout(PATIENCE):
            while (message := await self._sent.get()).get("id") != id or "method" in message:
                pass
        return message

    async def works(self) -> None:
        self.post({"jsonrpc": "2.0", "id": "sane", "method": "textDocument/hover", "params": HOVER})
        assert "**word**" in (await self.answer("sane"))["result"]["contents"]["value"]


HOVER = on(URI, 0, 0)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": recorded("vscode_139")["initialize"],
}
OPENED = {
    "jsonrpc": "2.0",
    "method": "textDocument/didOpen",
    "params": {
        "textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": "word\n"}
    },
}


@asynccontextmanager
async def wired(factory: EngineFactory = lambda _: Ready(FakeSession())) -> AsyncIterator[Wire]:
    stream = asyncio.StreamReader()
    wire = Wire(stream)

    class Outbox:
        def write(self, data: bytes, /) -> None:
            wire.sent(data)

        def close(self) -> None: ...

    serving = asyncio.create_task(serve(stream, Outbox(), factory))
    try:
        yield wire
    finally:
        stream.feed_eof()
        await asyncio.wait_for(serving, PATIENCE)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """Introduced, with a document open."""
    async with wired() as wire:
        wire.post(INITIALIZE)
        await wire.answer(0)
        wire.post(OPENED)
        yield wire


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-Length: %d\r\n\r\n",
        b"Content-Length: %d \n\n",
    ],
)
async def test_names_of_headers_are_understood_in_any_case(header: bytes) -> None:
    async with wired() as wire:
        body = json.dumps(INITIALIZE).encode()
        wire.write(header % len(body) + body)
        assert "capabilities" in (await wire.answer(0))["result"]
        wire.post(OPENED)
        await wire.works()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b"1" * 5000, PARSE_ERROR),
        (b"[]", INVALID_REQUEST),
        (b"null", INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "method": 5}', INVALID_REQUEST),
    ],
)
async def test_what_is_no_message_is_answered_so(wire: Wire, body: bytes, code: int) -> None:
    wire.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert (await wire.answer(None))["error"]["code"] == code
    await wire.works()


@pytest.mark.parametrize("off", [-7, -1, 1, 30])
async def test_the_next_message_after_a_wrong_length_is_understood(wire: Wire, off: int) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {}}'
    wire.write(b"Content-Length: %d\r\n\r\n" % (len(body) + off) + body)
    wire.post({"jsonrpc": "2.0", "method": "lost where the length was too large"})
    await wire.works()


@pytest.mark.parametrize(
    "junk",
    [
        b"\r\n\r\n",
        b"x" * 200_000 + b"\r\n\r\n",
        b"Content-Length: 100000000000000000\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
    ],
)
async def test_headers_that_make_no_sense_are_passed_over(wire: Wire, junk: bytes) -> None:
    wire.write(junk)
    await wire.works()


async def test_requests_before_the_introduction_are_refused() -> None:
    async with wired() as wire:
        wire.post({"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "off"}})
        wire.post({"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": HOVER})
        assert (await wire.answer(1))["error"]["code"] == NOT_INITIALIZED
        wire.post(INITIALIZE)
        assert "capabilities" in (await wire.answer(0))["result"]
        wire.post(OPENED)
        await wire.works()


async def test_an_announced_introduction_starts_the_engine() -> None:
    engines: asyncio.Queue[Configuration] = asyncio.Queue()
    session = FakeSession()

    def factory(configuration: Configuration) -> Ready:
        engines.put_nowait(configuration)
        return Ready(session)

    def params(target: str) -> dict[str, Any]:
        return {**INITIALIZE["params"], "initializationOptions": {"target": target}}

    async with wired(factory) as wire:
        announced = params("cuda:h100")
        wire.post({"jsonrpc": "2.0", "method": "jaxsight/announce", "params": announced})
        async with asyncio.timeout(PATIENCE):
            configuration = await engines.get()
        assert configuration.settings == {"target": "cuda:h100"}
        assert session.configured == []
        # The settings of `initialize` take precedence, for the same engine.
        wire.post({**INITIALIZE, "params": params("cpu")})
        assert "capabilities" in (await wire.answer(0))["result"]
        wire.post(OPENED)
        await wire.works()
        assert session.configured[0].editor == {"target": "cpu"}
        assert engines.empty()


async def test_a_stream_that_ends_after_an_announcement_ends_the_server() -> None:
    async with wired() as wire:
        wire.post({"jsonrpc": "2.0", "method": "jaxsight/announce", "params": None})


async def test_requests_after_the_shutdown_are_refused(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    await client.request("shutdown")
    with pytest.raises(ResponseError) as error:
        await client.request("textDocument/hover", HOVER)
    assert error.value.code == INVALID_REQUEST


async def test_a_second_introduction_is_refused(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    with pytest.raises(ResponseError) as error:
        await client.request("initialize", INITIALIZE["params"])
    assert error.value.code == INVALID_REQUEST


async def test_an_id_that_is_in_use_is_refused(client: Client, session: FakeSession) -> None:
    session.slow = asyncio.Event()
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word\n")
    first = client.begin("textDocument/hover", HOVER, number=7)
    second = client.begin("textDocument/hover", HOVER, number=7)
    with pytest.raises(ResponseError) as error:
        await asyncio.wait_for(second, PATIENCE)
    assert error.value.code == INVALID_REQUEST
    first.cancel()


async def test_a_notification_with_an_id_is_refused(wire: Wire) -> None:
    wire.post({**OPENED, "id": 5})
    assert (await wire.answer(5))["error"]["code"] == INVALID_REQUEST
    await wire.works()


async def test_a_document_that_the_client_does_not_show_is_given_all_the_same(
    client: Client,
) -> None:
    client.answers["window/showDocument"] = lambda params: "no"
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    command = {"command": "jaxsight.show", "arguments": [URI, "f"]}
    assert (await client.request("workspace/executeCommand", command))["text"] == "{ f }\n"


@pytest.mark.parametrize("id", [[], {}, None, 1.5, "none", 5])
async def test_the_cancellation_of_what_is_no_id_is_passed_over(wire: Wire, id: object) -> None:
    wire.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})
    await wire.works()


async def test_settings_may_look_like_a_message(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vim9_ale")["initialize"])
    look = {"jsonrpc": "2.0", "id": 1, "method": "shutdown"}
    params = {"settings": {"jaxsight": {"variables": look}}}
    client.notify("workspace/didChangeConfiguration", params)
    await client.settled()
    assert session.configured[-1].editor == {"variables": look}


async def test_an_answer_that_makes_no_sense_ends_what_waited_for_it(
    client: Client, session: FakeSession
) -> None:
    client.answers["window/showMessageRequest"] = lambda params: 5
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    command = {"command": "jaxsight.chooseSet", "arguments": [URI, "f"]}
    with pytest.raises(ResponseError) as error:
        await client.request("workspace/executeCommand", command)
    assert error.value.code == INVALID_PARAMS
    assert session.chosen == {}
