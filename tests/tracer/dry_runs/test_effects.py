"""Programs that are run for their calls have no effect outside of the process."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages.replies import Traced
from tests.truth.measure import session

EFFECTS = {
    "write": "open(HERE / 'file', 'w').write('text')",
    "append": "(HERE / 'file').open('ab').write(b'text')",
    "path": "(HERE / 'file').write_text('text')",
    "folder": "os.makedirs(HERE / 'a' / 'b')",
    "temporary": "tempfile.mkdtemp(dir=HERE)",
    "numpy": "np.save(HERE / 'file.npy', np.zeros(3))",
    "pickle": "pickle.dump(1, open(HERE / 'file', 'wb'))",
    "sqlite": "sqlite3.connect(HERE / 'file.db').execute('create table t (x)')",
    "remove": "shutil.rmtree(HERE)",
    "rename": "os.rename(HERE, HERE.with_name('other'))",
    "process": "subprocess.run(['touch', str(HERE / 'file')])",
    "system": "os.system(f'touch {HERE}/file')",
    "fork": "os.fork() or (HERE / 'file').touch()",
    "multiprocessing": "multiprocessing.Process(target=(HERE / 'file').touch).start()",
    "thread": "threading.Thread(target=(HERE / 'file').touch).start()",
    "pool": "ThreadPoolExecutor().submit((HERE / 'file').touch).result()",
    "sleep": "time.sleep(1)",
    "socket": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "request": "urllib.request.urlopen(f'http://127.0.0.1:{PORT}', timeout=1)",
    "log": "logging.FileHandler(HERE / 'file').emit(logging.makeLogRecord({'msg': 'text'}))",
}
"""Statements by what they do."""

_PROGRAM = """
import logging, multiprocessing, os, pathlib, pickle, shutil, socket, sqlite3, subprocess
import tempfile, threading, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path({here!r})
PORT = {port}


def step(x):
    return jnp.sin(x) * 2


def save(x):
    {effect}
    return jnp.cos(x)


def main():
    x = jnp.ones((4, 5))
    {effect}
    save(x)
    try:
        {effect}
    except OSError:
        pass
    with {effect}:
        pass
    step(x)


if __name__ == "__main__":
    {effect}
    main()
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The changes that each effect made, and the functions that were not shown."""
    folder = tmp_path_factory.mktemp("programs")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        return asyncio.run(_outcome(folder, server))


async def _outcome(folder: Path, server: socket.socket) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async with session(folder, sys.executable) as running:
        for name, effect in EFFECTS.items():
            here = folder / name
            here.mkdir()
            (here / "kept").touch()
            path = str(folder / f"{name}.py")
            port = server.getsockname()[1]
            running.open(path, _PROGRAM.format(here=str(here), port=port, effect=effect))
            await running.settle_inputs(path)
            document = running.engine.documents.get(path)
            assert document is not None
            shown = set()
            for subject in running.engine.documents.subjects(document):
                view = await running.engine.traces.view(document, subject, None)
                if isinstance(view, View) and isinstance(view.answer.reply, Traced):
                    shown.add(subject.name)
            changes = [] if "step" in shown else ["step is not shown"]
            if not here.is_dir() or [p.name for p in here.iterdir()] != ["kept"]:
                changes.append("files changed")
            try:
                server.accept()[0].close()
                changes.append("a connection was made")
            except BlockingIOError:
                pass
            found[name] = changes
    return found


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_dry_run_has_no_effect(effect: str, outcome: dict[str, list[str]]) -> None:
    assert outcome[effect] == []
