"""The real server as a process, for a user who has decided nothing yet: a home of its own, and no
policy.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jaxsight.files.ownership import WRITABLE
from tests.lsp.client import Client, at, listen, on, recorded
from tests.quiet import QUIET

SERVER = Path(__file__).parents[2] / "server"

FUNCTION = '''\
import jax.numpy as jnp


def f(x):
    """
    Example inputs:
        x: f32[4]
    """
    return jnp.sin(x)
'''
TRACED = "f(x: f32[4]) -> f32[4]"

_WITHOUT_JAX = (
    "import sys; sys.modules['jax'] = None; sys.argv = ['jaxsight', 'server', *sys.argv[1:]];"
    "from jaxsight.__main__ import main; main()"
)
"""The server as it is where it is installed apart from JAX: its own Python is then no candidate."""


def home(tmp_path: Path) -> Path:
    """A home folder in which nothing was decided."""
    made = tmp_path / "home"
    made.mkdir(exist_ok=True)
    return made


def variables(tmp_path: Path, **more: str) -> dict[str, str]:
    """The environment of that user: only what has nothing to do with interpreters is left of the
    real one.
    """
    ours = ("XDG_", "JAXSIGHT_", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **kept,
        "PYTHONPATH": str(SERVER),
        "HOME": str(home(tmp_path)),
        "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
        "JAXSIGHT_COMPILERS": str(tmp_path / "no-compilers"),
        WRITABLE: str(tmp_path),  # where baits leave their marks
        **more,
    }


def stored(tmp_path: Path) -> dict[str, Any]:
    """What was decided, as it lies on disk."""
    found: dict[str, Any] = json.loads(store(tmp_path).read_text(encoding="utf-8"))
    return found


def store(tmp_path: Path) -> Path:
    """Where decisions are kept."""
    return home(tmp_path) / ".local" / "state" / "jaxsight" / "trust.json"


def decide(tmp_path: Path, *folders: Path, approvals: Mapping[Path, str] | None = None) -> None:
    """Let the user have decided before."""
    file = store(tmp_path)
    file.parent.mkdir(mode=0o700, parents=True)
    content = {
        "version": 1,
        "folders": [str(folder.resolve()) for folder in folders],
        "approvals": [
            {"folder": str(folder.resolve()), "what": what}
            for folder, what in (approvals or {}).items()
        ],
    }
    file.write_text(json.dumps(content), encoding="utf-8")
    file.chmod(0o600)


def spy(path: Path, mark: Path) -> Path:
    """A program that leaves a mark and then is this Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho run >> "{mark}"\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


def environment(folder: Path, mark: Path) -> Path:
    """A virtual environment whose interpreter leaves a mark, with JAX as far as files tell."""
    (folder / "lib" / "python3.11" / "site-packages" / "jax").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("")
    return spy(folder / "bin" / "python", mark)


@asynccontextmanager
async def server(
    tmp_path: Path,
    *roots: Path,
    arguments: tuple[str, ...] = (),
    with_jax: bool = True,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A server and a client that is Neovim, in some folders; its user answers no question unless a
    test does.
    """
    start = ["-m", "jaxsight", "server"] if with_jax else ["-c", _WITHOUT_JAX]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *start,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=variables(tmp_path, **(environ or {})),
        cwd=cwd or home(tmp_path),
    )
    assert process.stdin is not None
    client = Client(process.stdin.write)
    listening = asyncio.create_task(listen(process.stdout, client))
    folders = [{"uri": root.as_uri(), "name": root.name} for root in roots]
    try:
        await client.initialize(
            recorded("neovim_0.12.4")["initialize"],
            processId=None,
            rootUri=folders[0]["uri"] if folders else None,
            rootPath=str(roots[0]) if roots else None,
            workspaceFolders=folders or None,
            initializationOptions={**QUIET, **options},
        )
        yield client
    finally:
        client.notify("exit")
        try:
            await asyncio.wait_for(process.wait(), 20)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        listening.cancel()


async def hover(client: Client, file: Path, line: int = 3) -> str:
    """What is shown on the name of the function in a line."""
    found = await client.request("textDocument/hover", on(file.as_uri(), line, 4))
    # Markdown has backslashes before the underscores of paths.
    return "" if found is None else str(found["contents"]["value"]).replace("\\", "")


async def hover_with(client: Client, file: Path, words: str) -> str:
    """What is shown on the function, once it has some words in it."""
    async with asyncio.timeout(90):
        while words not in (shown := await hover(client, file)):  # noqa: ASYNC110 (an editor asks again)
            await asyncio.sleep(0.1)
    return shown


def open_file(client: Client, file: Path, text: str = FUNCTION) -> None:
    """Write a file and open it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    client.open(file.as_uri(), text)


async def asked(client: Client, count: int = 1) -> list[dict[str, Any]]:
    """The questions to the user, once so many have come."""
    return await client.heard("window/showMessageRequest", count)


def questions(client: Client) -> list[str]:
    """The questions to the user that have come."""
    return [p["message"] for m, p in client.requests if m == "window/showMessageRequest"]


def answering(client: Client, title: str | None) -> None:
    """Let the user answer so from now on."""
    answer = None if title is None else {"title": title}
    client.answers["window/showMessageRequest"] = lambda params: answer


async def run(client: Client, command: str, *arguments: str) -> Any:
    """Run a command."""
    params = {"command": command, "arguments": list(arguments)}
    return await client.request("workspace/executeCommand", params)


def whole(file: Path) -> dict[str, Any]:
    """Parameters that name all of a document."""
    return {
        "textDocument": {"uri": file.as_uri()},
        "range": {"start": at(0, 0), "end": at(100, 0)},
    }


async def findings_with(client: Client, file: Path, count: int) -> list[str]:
    """The messages of a file's diagnostics, once there are so many."""
    async with asyncio.timeout(90):
        while len(found := await findings(client, file)) < count:  # noqa: ASYNC110 (an editor asks again)
            await asyncio.sleep(0.1)
    return found


async def findings(client: Client, file: Path) -> list[str]:
    """The messages of a file's diagnostics."""
    if "diagnosticProvider" in client.capabilities:
        report = await client.request("textDocument/diagnostic", whole(file))
        items = report["items"]
    else:
        items = (await client.heard("textDocument/publishDiagnostics"))[-1]["diagnostics"]
    return [item["message"] for item in items]
