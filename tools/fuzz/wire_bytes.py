"""Bytes that are no message, or not one for now, on connections of their own: the server answers
what can be, and the next message."""

from __future__ import annotations

import asyncio
import json
import logging
from random import Random
from typing import Any

from jaxsight.lsp.server import serve
from tests.lsp.client import Ready, on, recorded
from tests.lsp.fake_session import FakeSession
from tools.fuzz.conversation import framed
from tools.fuzz.pieces import deep, mutated_bytes, mutated_json, odd_value
from tools.fuzz.report import Failure, Report, chance, smaller

PATIENCE = 20.0
URI = "file:///home/user/project/sample.py"
RECORDED = [
    recorded(name) for name in ("vscode_139", "emacs_30.1", "neovim_0.12.4", "helix_25.01.1")
]
SANE = {"jsonrpc": "2.0", "id": "sane", "method": "textDocument/hover", "params": on(URI, 0, 0)}
OPENED = {"textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": "word\n"}}


def _body(random: Random) -> bytes:
    messages = random.choice(RECORDED)["messages"]
    message: Any = {"jsonrpc": "2.0", "id": 7, **random.choice(messages)}
    match random.randrange(9):
        case 0:
            message["id"] = odd_value(random)
        case 1:
            message = [message] * random.randrange(4)
        case 2:
            message["params"] = deep(random.choice((10, 400)))
        case 3:
            message = mutated_json(message, random)
        case 4:
            message = {
                "jsonrpc": "2.0",
                "method": "$/cancelRequest",
                "params": {"id": odd_value(random)},
            }
        case 5:
            message = {
                "jsonrpc": "2.0",
                "id": odd_value(random),
                random.choice(("result", "error")): odd_value(random),
            }
        case 6:
            message.pop(random.choice(list(message)))
        case 7:
            return b"[" * random.choice((5, 5000, 100_000))
    body = json.dumps(message).encode()
    return mutated_bytes(body, random) if random.random() < 0.4 else body


def _piece(random: Random) -> bytes:
    """A message with its headers, of which something may be wrong."""
    body = _body(random)
    length = len(body)
    if random.random() < 0.15:
        length += random.choice((-50, -2, -1, 1, 2, 50))
    name = random.choice((b"Content-Length", b"content-length", b"CONTENT-LENGTH"))
    kind = random.choice(
        (
            b"",
            b"",
            b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n",
            b"X: " + b"y" * 70_000 + b"\r\n",
        )
    )
    head = b"%s%s: %d\r\n\r\n" % (kind, name, max(length, 0))
    match random.randrange(14):
        case 0:
            head = mutated_bytes(head, random)
        case 1:
            head = b"Content-Length: %s\r\n\r\n" % random.choice(
                (b"99999999999999999999", b"-1", b"0", b"", b"1e3", b"5 5", b"\xff", b"9" * 5000)
            )
        case 2:
            head = head.replace(b"\r\n", b"\n")
    return head + body


def draw(random: Random) -> list[bytes]:
    return [_piece(random) for _ in range(10)]


class _Connection:
    def __init__(self, random: Random) -> None:
        self.stream = asyncio.StreamReader()
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._random = random

    def write(self, data: bytes, /) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        if "method" not in message:
            self.answers.put_nowait(message)

    def close(self) -> None: ...

    async def say(self, data: bytes) -> None:
        """In pieces, with turns of the loop between."""
        size = self._random.choice(
            (len(data), len(data), 1 + len(data) // 7, 1 if len(data) < 3000 else 1000)
        )
        for at in range(0, len(data), max(size, 1)):
            self.stream.feed_data(data[at : at + size])
            await asyncio.sleep(0)

    async def answer(self, id: object) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while (message := await self.answers.get()).get("id") != id:
                code = message.get("error", {}).get("code")
                assert code not in (-32603,), f"answered by {message}"
        return message


async def _said(pieces: list[bytes], seed: str) -> None:
    random = chance(seed)
    connection = _Connection(random)
    serving = asyncio.create_task(
        serve(connection.stream, connection, lambda _: Ready(FakeSession()))
    )
    try:
        early = random.random() < 0.2  # before the introduction
        if early:
            for piece in pieces:
                await connection.say(piece)
        await connection.say(
            framed(
                {
                    "jsonrpc": "2.0",
                    "method": "nothing, twice: it may be taken for the rest of a body",
                }
            )
            * 2
        )
        initialize = {
            "jsonrpc": "2.0",
            "id": "init",
            "method": "initialize",
            "params": RECORDED[0]["initialize"],
        }
        await connection.say(framed(initialize))
        assert "result" in await connection.answer("init") or early, "not introduced"
        if not early:
            for piece in pieces:
                await connection.say(piece)
        await connection.say(framed({"jsonrpc": "2.0", "method": "nothing"}) * 2)
        await connection.say(
            framed({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": OPENED})
        )
        await connection.say(framed(SANE))
        answer = await connection.answer("sane")
        assert "**word**" in json.dumps(answer.get("result")), (
            f"a sane hover is answered by {answer}"
        )
        await connection.say(framed({"jsonrpc": "2.0", "id": "end", "method": "shutdown"}))
        assert "result" in await connection.answer("end")
        await connection.say(framed({**SANE, "id": "late"}))
        late = (await connection.answer("late")).get("error", {}).get("code")
        assert late == -32600, f"a request after the shutdown is answered by {late}"
    finally:
        connection.stream.feed_eof()
        await asyncio.wait_for(serving, PATIENCE)


class _Tracebacks(logging.Handler):
    """Keeps what was logged of exceptions that are not an answer to the client."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[0] is not None:
            kind = record.exc_info[0].__name__
            if not kind.startswith("JsonRpc") or kind == "JsonRpcInternalError":
                self.found.append(f"logged: {kind}: {record.exc_info[1]!s:.300}")


def _problem(pieces: list[bytes], seed: str) -> str | None:
    handler = _Tracebacks()
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.ERROR)
    try:
        asyncio.run(_said(pieces, seed))
    except TimeoutError:
        return "no answer"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what was looked for
        return f"{type(error).__name__}: {str(error)[:500]}"
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return handler.found[0] if handler.found else None


def run(count: int, seed: int) -> Report:
    report = Report()
    for batch in range(max(count // 10, 1)):
        name = f"{seed}:{batch}"
        pieces = draw(chance(name))
        report.cases += len(pieces)
        problem = _problem(pieces, name)
        if problem is not None:
            kind = problem[:60]
            found = smaller(
                pieces, lambda fewer, n=name, k=kind: (_problem(list(fewer), n) or "")[:60] == k, 20
            )  # type: ignore[misc]
            report.failures.append(
                Failure(name, problem, "\n".join(repr(piece[:1000]) for piece in found))
            )
    return report
