"""*Extract repro* and *Reduce repro*, with the real engine and real processes."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.files.private import cache_folder
from tests.e2e.editor import PATIENCE, SERVER, VSCODE, Editor, introduction, span, started

KIND = "refactor.rewrite.jaxsight.repro"
EXTRACT, REDUCE = "jaxsight.extractRepro", "jaxsight.reduceRepro"

MODEL = '''\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def root(x):
    return jnp.sqrt(x)


def loss(x, scale=2.0):
    """
    Example inputs:
        x: f32[40]
    """
    y = jnp.sin(x) + 1.0
    return jnp.sum(root(y - 3.0) * scale)


def fine(x):
    """
    Example inputs:
        x: f32[40]
    """
    return x + 1


def wrong(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.concatenate([x, jnp.ones((2, 2))])
'''

ENDLESS = '''\
import os
import subprocess
import time
from pathlib import Path

import jax


def endless(x):
    """
    Example inputs:
        x: f32[3]
    """
    if not isinstance(x, jax.core.Tracer):
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        started = Path(__file__).with_name("started")
        started.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
        started.with_suffix(".part").replace(started)
        time.sleep(1000)
    return x
'''


@asynccontextmanager
async def editing(root: Path, text: str, **options: Any) -> AsyncIterator[tuple[Editor, str]]:
    """VS Code with the extension, and a document that was not saved."""
    params = introduction(VSCODE, root, **options)
    params.capabilities.experimental = {"jaxsight": True}
    async with started(SERVER) as editor:
        answer = await editor.initialize_session(params)
        editor.server_capabilities = answer.capabilities
        uri = (root / "model.py").as_uri()
        editor.open(uri, text)
        yield editor, uri
        await editor.shutdown_session()


def bar_of(editor: Editor, title: str) -> str | int | None:
    """Return the token of a progress bar that has begun."""
    for token, steps in editor.progress_reports.items():
        if isinstance(steps[0], types.WorkDoneProgressBegin) and steps[0].title == title:
            return token
    return None


def children(editor: Editor) -> list[str]:
    """Return the command lines of the processes that extract and reduce."""
    below = psutil.Process(editor.process.pid).children(recursive=True)
    lines = [" ".join(process.cmdline()) for process in below]
    return [line for line in lines if "boot.py repro" in line]


def text_of(file: str) -> str:
    return Path(file).read_text()


async def started_call(folder: Path) -> list[psutil.Process]:
    """Return the processes of the endless function, once it was called."""
    mark = folder / "started"
    async with asyncio.timeout(PATIENCE):
        while not mark.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return [psutil.Process(int(pid)) for pid in text_of(str(mark)).split()]


def folders() -> set[Path]:
    kept = cache_folder("repros")
    assert kept is not None
    return set(kept.iterdir()) if kept.is_dir() else set()


@pytest.mark.slow
async def test_a_failing_function_becomes_a_document(tmp_path: Path) -> None:
    async with editing(tmp_path, MODEL) as (editor, uri):
        (action,) = await editor.code_actions(uri, span(10, 4, 8), only=KIND)
        assert action.title == "Extract repro of loss"
        shown = await editor.execute(action.command)
        assert shown["summary"] == "FloatingPointError: invalid value (nan) encountered in sqrt"
        assert editor.shown_documents[-1].uri == shown["uri"]
        assert shown["uri"].endswith("/model.py/loss.repro.py")
        linked = await editor.linked_content(shown["uri"])
        assert linked["text"] == shown["text"] == text_of(shown["file"])
        lines = linked["text"].split("\n")
        links = {
            lines[link["line"]].split("(")[0]: link["range"]["start"] for link in linked["links"]
        }
        assert links == {
            "Captured from model.py:8 in root.": {"line": 7, "character": 0},
            "def main": {"line": 10, "character": 4},
        }
        (offer,) = await editor.receive(types.WINDOW_SHOW_MESSAGE_REQUEST)
        assert shown["file"] in offer.message
        assert [item.title for item in offer.actions] == ["Reduce"]
        run = [sys.executable, shown["file"]]
        finished = await asyncio.to_thread(subprocess.run, run, capture_output=True, text=True)
        assert "FloatingPointError" in finished.stderr
        titles = [each.title for each in await editor.code_actions(uri, span(10, 4, 8), only=KIND)]
        assert titles == ["Extract repro of loss", "Reduce repro of loss"]
        assert children(editor) == []


@pytest.mark.slow
async def test_a_repro_is_reduced_when_that_is_chosen(tmp_path: Path) -> None:
    async with editing(tmp_path, MODEL) as (editor, uri):
        editor.choose = lambda params: params.actions[0] if params.actions else None
        shown = await editor.execute(EXTRACT, uri, "loss")
        await editor.until(lambda: len(editor.shown_documents) == 2, patience=2 * PATIENCE)
        reduced = editor.shown_documents[-1].uri
        assert reduced.endswith("/model.py/loss.reduced.py")
        linked = await editor.linked_content(reduced)
        assert "jnp.array(-1.0, dtype=jnp.float32)" in linked["text"]
        assert len(linked["text"]) < len(shown["text"])
        bar = bar_of(editor, "Reducing the repro of loss")
        assert bar is not None
        reports = [getattr(step, "message", "") or "" for step in editor.progress_reports[bar]]
        assert any(re.fullmatch(r"1 equation left, \d+ candidates tried", each) for each in reports)


@pytest.mark.slow
async def test_a_function_without_a_failure_has_no_repro(tmp_path: Path) -> None:
    before = folders()
    async with editing(tmp_path, MODEL) as (editor, uri):
        assert await editor.execute(EXTRACT, uri, "fine") is None
        assert [message.message for message in editor.messages] == [
            "no repro of fine: the program finished without an error"
        ]
        assert await editor.execute(REDUCE, uri, "fine") is None
        assert editor.messages[-1].message == ("there is no repro of fine: extract a repro first")
        assert editor.shown_documents == []
        assert children(editor) == []
    assert folders() == before


async def test_the_action_is_offered_on_names_and_on_errors(tmp_path: Path) -> None:
    async with editing(tmp_path, MODEL) as (editor, uri):
        (diagnostic,) = await editor.diagnostics_of(uri)
        (action,) = await editor.code_actions(uri, diagnostic.range, only=KIND)
        assert action.title == "Extract repro of wrong"
        assert action.diagnostics is not None
        assert [each.code for each in action.diagnostics] == [diagnostic.code]
        assert await editor.code_actions(uri, span(24, 4, 10), only=KIND) == []
        (action,) = await editor.code_actions(uri, span(19, 4, 8), only=KIND)
        assert action.title == "Extract repro of fine"


@pytest.mark.slow
async def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    before = folders()
    async with editing(tmp_path, ENDLESS) as (editor, uri):
        extracting = asyncio.create_task(editor.execute(EXTRACT, uri, "endless"))
        processes = await started_call(tmp_path)
        token = bar_of(editor, "Extracting a repro of endless")
        assert token is not None
        editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        assert await extracting is None
        assert not any(process.is_running() for process in processes)
        assert children(editor) == []
        assert editor.messages == []
        assert isinstance(editor.progress_reports[token][-1], types.WorkDoneProgressEnd)
    assert folders() == before


@pytest.mark.slow
async def test_a_cancelled_request_leaves_nothing_behind(tmp_path: Path) -> None:
    async with editing(tmp_path, ENDLESS) as (editor, uri):
        params = types.ExecuteCommandParams(EXTRACT, [uri, "endless"])
        method = types.WORKSPACE_EXECUTE_COMMAND
        extracting = asyncio.create_task(
            editor.protocol.send_request_async(method, params, "an extraction")
        )
        processes = await started_call(tmp_path)
        editor.cancel_request(types.CancelParams("an extraction"))
        with pytest.raises(JsonRpcException):
            await extracting
        _, alive = await asyncio.to_thread(psutil.wait_procs, processes, PATIENCE)
        assert alive == []


@pytest.mark.slow
async def test_the_end_of_the_server_ends_an_extraction(tmp_path: Path) -> None:
    async with editing(tmp_path, ENDLESS) as (editor, uri):
        extracting = asyncio.create_task(editor.execute(EXTRACT, uri, "endless"))
        processes = await started_call(tmp_path)
    with pytest.raises(JsonRpcException):
        await extracting
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, PATIENCE)
    assert alive == []


async def test_code_of_an_untrusted_folder_does_not_run(tmp_path: Path) -> None:
    async with editing(tmp_path, ENDLESS, trusted=False) as (editor, uri):
        assert await editor.execute(EXTRACT, uri, "endless") is None
        assert "not trusted" in editor.messages[-1].message
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
async def test_other_clients_do_not_wait_and_get_a_file(tmp_path: Path) -> None:
    async with started(SERVER) as editor:
        await editor.introduce("Emacs 30.1", tmp_path)
        uri = (tmp_path / "model.py").as_uri()
        editor.open(uri, MODEL)
        assert await editor.execute(EXTRACT, uri, "loss") is None
        await editor.until(lambda: len(editor.shown_documents) == 1)
        shown = editor.shown_documents[0].uri
        assert shown.startswith("file://")
        assert shown.endswith("/loss.py")
        await editor.shutdown_session()
