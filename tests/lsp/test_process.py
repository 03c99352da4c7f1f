"""The server as a process: its streams are its own, and it ends when its client does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.lsp.client import PATIENCE, Client, on, recorded

URI = "file:///home/user/project/sample.py"
TOP = Path(__file__).parents[2]


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[tuple[Process, Client]]:
    """A process of the server and a client on its streams."""
    paths = os.pathsep.join([str(TOP / "server"), str(TOP)])
    command = [sys.executable, "-m", "tests.lsp.serve_fake", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, cwd=TOP
    )
    assert process.stdin is not None
    client = Client(process.stdin.write)
    listening = asyncio.create_task(listen(process.stdout, client))
    try:
        yield process, client
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        listening.cancel()


async def listen(stream: asyncio.StreamReader | None, client: Client) -> None:
    assert stream is not None
    while data := await stream.read(65536):
        await client.feed(data)


async def ended(process: Process) -> tuple[int, str]:
    """The exit status and what was written to standard error."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        errors = await process.stderr.read()
        return await process.wait(), errors.decode()


def introduction(**changes: Any) -> dict[str, Any]:
    return {**recorded("vscode_139")["initialize"], **changes}


async def test_prints_do_not_enter_the_protocol() -> None:
    async with started("--stdio") as (process, client):
        await client.initialize(introduction())
        client.open(URI, "word\n")
        hover = await client.request("textDocument/hover", on(URI, 0, 0))
        assert hover["contents"]["value"].startswith("**word**")
        client.notify("exit")
        _, errors = await ended(process)
        assert errors.count("spoilt") == 2


async def test_end_that_was_announced_is_a_success() -> None:
    async with started() as (process, client):
        await client.initialize(introduction())
        assert await client.request("shutdown") is None
        client.notify("exit")
        status, errors = await ended(process)
        assert status == 0
        assert "engine closed" in errors


async def test_end_of_the_stream_is_the_end() -> None:
    async with started() as (process, client):
        await client.initialize(introduction())
        assert process.stdin is not None
        process.stdin.close()
        status, errors = await ended(process)
        assert status == 1
        assert "engine closed" in errors


async def test_end_of_the_clients_process_is_the_end_though_the_stream_is_open() -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=PIPE)
    async with started() as (process, client):
        await client.initialize(introduction(processId=other.pid))
        other.kill()
        await other.wait()
        status, errors = await ended(process)
        assert status == 1
        assert "engine closed" in errors


async def test_client_whose_process_cannot_be_seen_is_served() -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    async with started() as (_, client):
        await client.initialize(introduction(processId=gone.pid))
        await client.settled()


async def test_server_listens_where_it_is_told() -> None:
    async with started("--tcp", "127.0.0.1:0") as (process, _):
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), PATIENCE)
        port = int(line.rpartition(b":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        client = Client(writer.write)
        listening = asyncio.create_task(listen(reader, client))
        await client.initialize(introduction())
        await client.request("shutdown")
        client.notify("exit")
        status, _ = await ended(process)
        assert status == 0
        await listening
        writer.close()


async def test_wrong_address_is_explained() -> None:
    async with started("--tcp", "nowhere") as (process, _):
        status, errors = await ended(process)
        assert status == 2
        assert "expected HOST:PORT" in errors
