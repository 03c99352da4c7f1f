"""*Measure*, with the real engine and the user's function in a real process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from lsprotocol import types

from tests.e2e.editor import PATIENCE, SERVER, VSCODE, Editor, introduction, started

pytestmark = pytest.mark.slow

MEASURE = "jaxsight.measure"

MODEL = '''\
import os
from pathlib import Path

import jax
import jax.numpy as jnp


def ranked(x):
    """
    Example inputs:
        x: f32[256, 256]
    """
    y = jnp.sort(x, axis=1)
    return y @ x


def note(x):
    mark = Path(__file__).with_name("runs")
    mark.with_suffix(".part").write_text(str(os.getpid()))
    mark.with_suffix(".part").replace(mark)
    return x


def endless(x):
    """
    Example inputs:
        x: f32[8]
    """
    x = jax.pure_callback(note, x, x)
    return jax.lax.while_loop(lambda x: x[0] == x[0], lambda x: x + 1, x)
'''
RANKED, SORT = 7, 12


@asynccontextmanager
async def editing(root: Path, **options: object) -> AsyncIterator[tuple[Editor, str]]:
    """VS Code with the extension, and a file."""
    file = root / "model.py"
    file.write_text(MODEL)
    params = introduction(VSCODE, root, target="cpu", inlayHints={"shapes": False}, **options)
    params.capabilities.experimental = {"jaxsight": True}
    async with started(SERVER) as editor:
        answer = await editor.initialize_session(params)
        editor.server_capabilities = answer.capabilities
        editor.open(file.as_uri(), MODEL)
        yield editor, file.as_uri()
        await editor.shutdown_session()


def agree(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
    return next((item for item in params.actions or [] if item.title == "Measure"), None)


async def becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def stages(editor: Editor) -> list[str]:
    """Return what the progress of the last measurement has said."""
    for begin, *steps in reversed(list(filter(None, editor.progress_reports.values()))):
        if isinstance(begin, types.WorkDoneProgressBegin) and begin.title.startswith("Measuring"):
            return [getattr(step, "message", "") or "" for step in steps]
    return []


def token_of(editor: Editor) -> str | int:
    return next(
        token
        for token, steps in editor.progress_reports.items()
        if steps
        and isinstance(steps[0], types.WorkDoneProgressBegin)
        and steps[0].title.startswith("Measuring")
    )


async def labels(editor: Editor, uri: str) -> dict[int, list[str]]:
    lines: dict[int, list[str]] = {}
    for hint in await editor.hints(uri):
        lines.setdefault(hint.position.line, []).append(str(hint.label))
    return lines


async def test_a_click_measures_and_shows_the_times(tmp_path: Path) -> None:
    async with editing(tmp_path) as (editor, uri):
        editor.choose = agree
        lens = next(
            lens
            for lens in await editor.lenses(uri)
            if lens.command is not None and lens.command.command == MEASURE
        )
        assert lens.command is not None
        assert lens.command.title == "measure"
        answer = await editor.execute(lens.command)
        assert answer["headline"].startswith("ranked: ")
        assert answer["headline"].endswith(" measured on cpu")
        assert 0 < answer["deviceSeconds"] < 1
        assert 0 < answer["wallSeconds"] < 1
        assert "running" in stages(editor)
        await labels(editor, uri)

        async def shown() -> dict[int, list[str]]:
            async with asyncio.timeout(PATIENCE):
                while True:
                    known = await labels(editor, uri)
                    if any(label.startswith("⏱") for label in known.get(SORT, ())):
                        return known
                    await asyncio.sleep(0.1)

        known = await shown()
        assert any(" measured" in label for label in known[RANKED])
        panel = await editor.ask("jaxsight/panel", uri=uri, function="ranked")
        measured = panel["drawn"]["measured"]
        assert panel["measurable"]
        assert measured["seconds"] == answer["wallSeconds"]
        times = [kernel["measured"] for kernel in panel["drawn"]["kernels"]]
        assert max(filter(None, times)) <= 1.1 * measured["deviceSeconds"]
        editor.edit(uri, 2, MODEL.replace("axis=1", "axis=0"))
        panel = await editor.ask("jaxsight/panel", uri=uri, function="ranked")
        assert panel["drawn"]["measured"]["stale"]
        assert {kernel["measured"] for kernel in panel["drawn"]["kernels"]} == {None}


async def test_nothing_runs_without_consent(tmp_path: Path) -> None:
    async with editing(tmp_path) as (editor, uri):
        assert await editor.execute(MEASURE, uri, "ranked") is None
        (question,) = await editor.receive(types.WINDOW_SHOW_MESSAGE_REQUEST)
        assert question.message.startswith("Measure `ranked` on this machine's CPU?")
        assert stages(editor) == []


async def test_nothing_runs_in_an_untrusted_folder(tmp_path: Path) -> None:
    async with editing(tmp_path, trusted=False) as (editor, uri):
        editor.choose = agree
        assert await editor.execute(MEASURE, uri, "ranked") is None
        assert "not trusted" in editor.messages[-1].message
        assert stages(editor) == []


@pytest.mark.parametrize("way", ["progress", "lens", "the server ends"])
async def test_a_cancelled_measurement_leaves_no_process(tmp_path: Path, way: str) -> None:
    """One that the user cancels has ended within a second."""
    async with editing(tmp_path) as (editor, uri):
        editor.choose = agree
        running = asyncio.create_task(editor.execute(MEASURE, uri, "endless"))
        await becomes((tmp_path / "runs").exists)
        begun = [psutil.Process(int((tmp_path / "runs").read_text()))]
        await becomes(lambda: "running" in stages(editor))
        start = time.monotonic()
        if way == "progress":
            params = types.WorkDoneProgressCancelParams(token_of(editor))
            editor.window_work_done_progress_cancel(params)
            assert await running is None
        elif way == "lens":
            lens = next(
                lens
                for lens in await editor.lenses(uri)
                if lens.command is not None and lens.command.title == "cancel measuring"
            )
            await editor.execute(lens.command)
            assert await running is None
        if way != "the server ends":
            _, alive = await asyncio.to_thread(psutil.wait_procs, begun, PATIENCE)
            assert alive == []
            assert time.monotonic() - start < 1
    await asyncio.gather(running, return_exceptions=True)
    _, alive = await asyncio.to_thread(psutil.wait_procs, begun, PATIENCE)
    assert alive == []
