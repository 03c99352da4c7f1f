"""*Run until seen*, with the real engine and the user's program as a real process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types

from tests.e2e.editor import PATIENCE, SERVER, VSCODE, Editor, introduction, started

RUN = "jaxsight.runUntilSeen"

MODEL = """\
import jax.numpy as jnp


def loss(w, data):
    y = data["x"] @ w
    return jnp.sum(y**2)
"""

TRAIN = """\
import os
import time
from pathlib import Path

import jax.numpy as jnp

from model import loss

if __name__ == "__main__":
    mark = Path(__file__).with_name("started")
    mark.with_suffix(".part").write_text(str(os.getpid()))
    mark.with_suffix(".part").replace(mark)
    while not Path(__file__).with_name("go").exists():
        time.sleep(0.05)
    loss(jnp.ones((3, 2)), {"x": jnp.ones((5, 3))})
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
"""

TEST = """\
import jax.numpy as jnp

from model import loss


def test_loss():
    assert loss(jnp.ones((3, 2)), {"x": jnp.ones((5, 3))}).shape == ()
"""

NO_PROGRAM = "no script, test or notebook calls the functions of model.py"


def write(root: Path, files: dict[str, str]) -> None:
    for file, text in files.items():
        (root / file).write_text(text)


@asynccontextmanager
async def editing(
    root: Path, files: dict[str, str], name: str = "model.py", **options: Any
) -> AsyncIterator[tuple[Editor, str]]:
    """VS Code with the extension, and one of a project's files."""
    write(root, files)
    params = introduction(VSCODE, root, examplesFromPrograms=False, **options)
    params.capabilities.experimental = {"jaxsight": True}
    async with started(SERVER) as editor:
        answer = await editor.initialize_session(params)
        editor.server_capabilities = answer.capabilities
        uri = (root / name).as_uri()
        editor.open(uri, files[name])
        yield editor, uri
        await editor.shutdown_session()


def agree(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
    return next((item for item in params.actions or [] if item.title == "Run"), None)


async def run_lenses(editor: Editor, uri: str) -> list[types.CodeLens]:
    lenses = await editor.lenses(uri)
    return [lens for lens in lenses if lens.command is not None and lens.command.command == RUN]


def bar_of(editor: Editor) -> str | int:
    """Return the token of the run's progress bar."""
    for token, steps in editor.progress_reports.items():
        begin = steps[0]
        if isinstance(begin, types.WorkDoneProgressBegin) and begin.title.startswith("Running"):
            return token
    raise LookupError


def is_there(path: Path) -> bool:
    return path.exists()


async def appears(path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_there(path):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_click_runs_an_importer_and_shows_what_it_called(tmp_path: Path) -> None:
    async with editing(tmp_path, {"model.py": MODEL, "train.py": TRAIN}) as (editor, uri):
        editor.choose = agree
        (lens,) = await run_lenses(editor, uri)
        assert lens.command is not None
        assert lens.range.start == types.Position(0, 0)
        assert lens.command.title == "▶ run python train.py until 1 function is seen"
        running = asyncio.create_task(editor.execute(lens.command))
        await appears(tmp_path / "started")
        program = psutil.Process(int((tmp_path / "started").read_text()))
        (tmp_path / "go").touch()
        assert await running == {"reason": "seen", "seen": ["loss"], "missing": []}
        assert not program.is_running()
        (asked,) = await editor.receive(types.WINDOW_SHOW_MESSAGE_REQUEST)
        assert (
            asked.message == f"Run `python train.py` in {tmp_path} until it has called 1 function?"
        )
        token = bar_of(editor)
        begin, *reports, end = editor.progress_reports[token]
        assert isinstance(begin, types.WorkDoneProgressBegin)
        assert begin.title == "Running python train.py"
        assert begin.cancellable
        assert "missing: loss" in [getattr(report, "message", "") for report in reports]
        assert isinstance(end, types.WorkDoneProgressEnd)
        async with asyncio.timeout(PATIENCE):
            while not any("f32[5,2]" in str(hint.label) for hint in await editor.hints(uri)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await run_lenses(editor, uri) == []


async def test_nothing_runs_without_consent(tmp_path: Path) -> None:
    async with editing(tmp_path, {"model.py": MODEL, "train.py": TRAIN}) as (editor, uri):
        assert await editor.execute(RUN, uri) is None
        assert len(await editor.receive(types.WINDOW_SHOW_MESSAGE_REQUEST)) == 1
        assert not (tmp_path / "started").exists()


async def test_nothing_runs_in_an_untrusted_folder(tmp_path: Path) -> None:
    files = {"model.py": MODEL, "train.py": TRAIN}
    async with editing(tmp_path, files, trusted=False) as (editor, uri):
        editor.choose = agree
        assert await editor.execute(RUN, uri) is None
        assert "not trusted" in editor.messages[-1].message
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["cancelled", "the server ends"])
async def test_a_stopped_run_leaves_no_process(tmp_path: Path, way: str) -> None:
    async with editing(tmp_path, {"model.py": MODEL, "train.py": TRAIN}) as (editor, uri):
        editor.choose = agree
        running = asyncio.create_task(editor.execute(RUN, uri))
        await appears(tmp_path / "started")
        program = psutil.Process(int((tmp_path / "started").read_text()))
        if way == "cancelled":
            token = bar_of(editor)
            editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
            assert await running == {"reason": "stopped", "seen": [], "missing": ["loss"]}
    await asyncio.gather(running, return_exceptions=True)
    _, alive = await asyncio.to_thread(psutil.wait_procs, [program], PATIENCE)
    assert alive == []


@pytest.mark.slow
async def test_the_test_of_a_file_is_run_before_others(tmp_path: Path) -> None:
    files = {"model.py": MODEL, "train.py": TRAIN, "model_test.py": TEST}
    async with editing(tmp_path, files) as (editor, uri):
        editor.choose = agree
        (lens,) = await run_lenses(editor, uri)
        assert lens.command is not None
        assert "python -m pytest -q model_test.py" in lens.command.title
        answer = await editor.execute(lens.command)
        assert answer == {"reason": "seen", "seen": ["loss"], "missing": []}
        assert not (tmp_path / "started").exists()


@pytest.mark.slow
async def test_tests_have_a_lens_for_what_they_import(tmp_path: Path) -> None:
    files = {"model.py": MODEL, "model_test.py": TEST}
    async with editing(tmp_path, files, "model_test.py") as (editor, uri):
        editor.choose = agree
        (lens,) = await run_lenses(editor, uri)
        assert (await editor.execute(lens.command))["seen"] == ["loss"]
        assert await run_lenses(editor, uri) == []


@pytest.mark.slow
async def test_what_a_failed_program_did_not_call_is_named(tmp_path: Path) -> None:
    script = MODEL + "\n\nif __name__ == '__main__':\n    raise ValueError('no data')\n"
    async with editing(tmp_path, {"model.py": script}) as (editor, uri):
        editor.choose = agree
        head, main = await run_lenses(editor, uri)
        assert (head.range.start.line, main.range.start.line) == (0, 8)
        answer = await editor.execute(main.command)
        assert answer == {"reason": "ended", "seen": [], "missing": ["loss"]}
        assert editor.messages[-1].message == (
            "python model.py failed (ValueError: no data); 1 of 1 function not called: loss"
        )


async def test_a_file_that_nothing_calls_has_no_lens(tmp_path: Path) -> None:
    async with editing(tmp_path, {"model.py": MODEL}) as (editor, uri):
        assert await run_lenses(editor, uri) == []
        assert await editor.execute(RUN, uri) is None
        assert editor.messages[-1].message == NO_PROGRAM
