"""A real server in a folder whose files are anything: it answers `initialize`, works, and says what
is wrong.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from jaxsight.settings.reading import read_project
from tests.lsp.client import Client, on, recorded
from tests.quiet import QUIET

TOP = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds after which a server that does not answer hangs."""

MODEL = '''\
def f(x):
    """
    Example inputs:
        x: f32[4]
    """
    return x * 2
'''


@asynccontextmanager
async def server(
    *folders: Path, trusted: bool, **environment: str
) -> AsyncIterator[tuple[Process, Client]]:
    """A process of the server, introduced to a client that opened folders."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jaxsight", "server"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=folders[0],
        env={
            **os.environ,
            "PYTHONPATH": str(TOP / "server"),
            "JAXSIGHT_TRUST": "always",
            **environment,
        },
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = Client(process.stdin.write)

    async def listen(stream: asyncio.StreamReader) -> None:
        while data := await stream.read(65536):
            await client.feed(data)

    listening = asyncio.create_task(listen(process.stdout))
    opened = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    try:
        async with asyncio.timeout(PATIENCE):
            await client.initialize(
                recorded("vscode_139")["initialize"],
                rootUri=opened[0]["uri"],
                rootPath=str(folders[0]),
                workspaceFolders=opened,
                initializationOptions={**QUIET, "trusted": trusted},
            )
            yield process, client
            await client.request("shutdown")
            client.notify("exit")
            await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        listening.cancel()


async def served_untrusted(folders: list[Path]) -> None:
    """A server opens the folders and answers about a file in each."""
    async with server(*folders, trusted=False) as (_, client):
        for folder in folders:
            uri = (folder / "model.py").as_uri()
            client.open(uri, MODEL)
            hover = await client.request("textDocument/hover", on(uri, 0, 5))
            assert "trust" in hover["contents"]["value"]


def problems(folder: Path) -> list[str]:
    return [finding.message for finding in read_project(folder).problems]


def hex_number(digits: int) -> str:
    return f"[tool.jaxsight]\nmemory-limit = 0x{'f' * digits}\n"


CONTENTS = {
    "an integer of 5000 digits": (
        f"[tool.jaxsight]\nmemory-limit = {'9' * 5000}\n",
        "integer with too many digits",
    ),
    "a hexadecimal integer of 5000 digits": (
        hex_number(5000),
        'expected an amount of memory such as "4 GiB", got an integer of 20,000 bits',
    ),
    "an integer beyond floats": (
        f"[tool.jaxsight.timeouts]\ntrace = 1{'0' * 400}\n[tool.jaxsight]\nfoo = 1\n",
        "unknown setting `foo`",
    ),
    "text with a size beyond floats": (
        f'[tool.jaxsight]\nmemory-limit = "{"9" * 400} GiB"\nfoo = 1\n',
        "unknown setting `foo`",
    ),
    "deep arrays": (f"a = {'[' * 5000}{']' * 5000}\n", "values nested more than 64 levels deep"),
    "deep tables": (f"a = {'{a=' * 5000}1{'}' * 5000}\n", "values nested more than 64 levels deep"),
    "long keys": (f"{'.'.join('a' * 50_000)} = 1\n", "keys nested more than 64 levels deep"),
    "long headers": (f"[{'.'.join('a' * 50_000)}]\n", "keys nested more than 64 levels deep"),
    "brackets never closed": ("a = [[[[\n", "invalid TOML: Invalid value"),
    "a string never closed": (f'a = """{"b" * 100_000}\\', "invalid TOML"),
    "null bytes": ("a = 1\0\n", "invalid TOML"),
    "more than its limit": (
        f"# {'x' * 300_000}\n",
        "cannot read the file: it is larger than 256 KiB",
    ),
}


async def test_no_content_of_the_settings_stops_the_server(tmp_path: Path) -> None:
    for name, (content, _) in CONTENTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(content)
    await served_untrusted([tmp_path / name for name in CONTENTS])


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_wrong_with_the_content_is_a_finding(tmp_path: Path, name: str) -> None:
    content, message = CONTENTS[name]
    (tmp_path / "pyproject.toml").write_text(content)
    assert problems(tmp_path)[0].startswith(message)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 * 2**30)


def utf_16(path: Path) -> None:
    path.write_text("[tool.jaxsight]\n", encoding="utf-16")


ODD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pipe": (pipe, "cannot read the file: it is a named pipe, expected a file"),
    "folder": (Path.mkdir, "cannot read the file: it is a folder, expected a file"),
    "endless device": (lambda path: path.symlink_to("/dev/zero"), "cannot read the file: it is a device, expected a file"),
    "the protocol's own stream": (
        lambda path: path.symlink_to("/dev/stdin"),
        "cannot read the file: it is a",
    ),
    "loop": (lambda path: path.symlink_to(path), "cannot read the file: Too many levels of symbolic links"),
    "3 GiB": (sparse, "cannot read the file: it is larger than 256 KiB"),
    "UTF-16": (utf_16, "cannot read the file: line 1 is not UTF-8 (byte 0xff)"),
}  # fmt: skip


async def test_nothing_under_the_name_of_the_settings_stops_the_server(tmp_path: Path) -> None:
    for name, (make, _) in ODD.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name / "pyproject.toml")
    await served_untrusted([tmp_path / name for name in ODD])


@pytest.mark.parametrize("name", ODD)
def test_what_is_under_the_name_of_the_settings_is_a_finding(tmp_path: Path, name: str) -> None:
    make, message = ODD[name]
    make(tmp_path / "pyproject.toml")
    assert problems(tmp_path)[0].startswith(message)


async def test_a_trusted_folder_of_odd_files_is_served(tmp_path: Path) -> None:
    for name in (
        "pyproject.toml",
        ".git",
        "setup.cfg",
        "setup.py",
        "pyvenv.cfg",
        ".python-version",
        "helper.py",
    ):
        os.mkfifo(tmp_path / name)
    for name in ("__init__.py", "model", "loop"):
        (tmp_path / name).symlink_to(tmp_path / name)
    uri = (tmp_path / "model.py").as_uri()
    async with server(tmp_path, trusted=True) as (_, client):
        client.open(uri, f"import helper\n{MODEL}")  # which `f` does not need
        hover = await client.request("textDocument/hover", on(uri, 1, 5))
        assert "f32[4]" in hover["contents"]["value"]
        client.edit(uri, 2, {"text": MODEL})
        hover = await client.request("textDocument/hover", on(uri, 0, 5))
        assert "f32[4]" in hover["contents"]["value"]
