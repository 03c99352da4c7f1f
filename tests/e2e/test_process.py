"""The server as a process: its streams are its own, and it ends when its client does."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import psutil
import pytest

from tests.e2e.editor import (
    PATIENCE,
    PRINTING,
    SERVER,
    VSCODE,
    Editor,
    introduction,
    opened,
    started,
)
from tests.e2e.programs import IDENTITY

URI = "file:///home/user/project/sample.py"

BOTH = pytest.mark.parametrize("command", [SERVER, PRINTING], ids=["real", "fake"])


async def status_of_closed(editor: Editor, command: list[str]) -> int:
    """Return the exit status of a server, which closed its engine before it ended."""
    status = await editor.exit_status()
    assert command is SERVER or "engine closed" in editor.errors
    return status


async def test_prints_do_not_enter_the_protocol() -> None:
    async with started(PRINTING, "--stdio") as editor:
        await editor.introduce(VSCODE)
        editor.open(URI, "word\n")
        assert (await editor.hover_text(URI, 0, 0)).startswith("**word**")
        editor.exit(None)
        await editor.exit_status()
        assert editor.errors.count("spoilt") == 2
        assert editor.error is None


@BOTH
async def test_end_that_was_announced_is_a_success(command: list[str]) -> None:
    async with started(command) as editor:
        await editor.introduce(VSCODE)
        assert await editor.shutdown_async(None) is None
        editor.exit(None)
        assert await status_of_closed(editor, command) == 0


@BOTH
async def test_end_of_the_stream_is_the_end(command: list[str]) -> None:
    async with started(command) as editor:
        await editor.introduce(VSCODE)
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert await status_of_closed(editor, command) == 1


@BOTH
async def test_end_of_the_clients_process_is_the_end_though_the_stream_is_open(
    command: list[str],
) -> None:
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=PIPE)
    params = introduction(VSCODE)
    params.process_id = client.pid
    async with started(command) as editor:
        await editor.initialize_session(params)
        client.kill()
        await client.wait()
        assert await status_of_closed(editor, command) == 1


@BOTH
async def test_client_whose_process_cannot_be_seen_is_served(command: list[str]) -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    params = introduction(VSCODE)
    params.process_id = gone.pid
    async with started(command) as editor:
        await editor.initialize_session(params)
        await editor.settled()


async def test_tracers_end_with_the_server(tmp_path: Path) -> None:
    async with opened(VSCODE, tmp_path) as editor:
        uri = (tmp_path / "f.py").as_uri()
        editor.open(uri, IDENTITY.format(type="f32[8]"))
        assert "-> f32[8]" in await editor.hover_text(uri, 0, 4)
        children = psutil.Process(editor.process.pid).children(recursive=True)
        assert children
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, PATIENCE)
    assert alive == []


async def test_many_documents_hold_up_neither_a_hover_nor_the_end(tmp_path: Path) -> None:
    text = IDENTITY.format(type="f32[8]")
    async with opened(VSCODE, tmp_path) as editor:
        for number in range(500):
            editor.open((tmp_path / f"f{number}.py").as_uri(), text)
        uri = (tmp_path / "asked.py").as_uri()
        editor.open(uri, text)
        assert "-> f32[8]" in await editor.hover_text(uri, 0, 4)
        children = psutil.Process(editor.process.pid).children(recursive=True)
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, PATIENCE)
    assert alive == []
