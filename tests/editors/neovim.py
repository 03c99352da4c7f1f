"""A real Neovim without a screen, driven from a test: Lua goes in by its remote interface, JSON
comes out.

It is set up as `docs/editors.md` tells people to, from that page's own text.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds until something that was to happen counts as not happening; starting JAX on a busy
machine is part of it.
"""

_BLOCK = re.compile(r'=== "Neovim[^"]*"\n\n +```lua\n(?P<lua>.*?)\n +```', re.DOTALL)
_LIBRARY = Path(__file__).with_name("driver.lua")


def missing() -> str:
    """Why these tests cannot run here; empty when they can."""
    binary = shutil.which("nvim")
    if binary is None:
        return "there is no nvim on PATH (`make test` installs one)"
    output = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)", output)
    if version is None or (int(version[1]), int(version[2])) < (0, 11):
        return f"{output.splitlines()[0]} is too old: 0.11 is needed"
    return ""


def documented_setup() -> str:
    """The Lua that the page on editors gives to people."""
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    block = _BLOCK.search(page)
    assert block is not None, "docs/editors.md has no setup for Neovim"
    return block["lua"]


class Neovim:
    """One running editor. `lua` runs code in it; the functions of `driver.lua` are in `T`."""

    def __init__(self, socket: str, environment: Mapping[str, str]) -> None:
        self._socket = socket
        self._environment = dict(environment)

    def lua(self, code: str, *arguments: object) -> Any:
        """The value that Lua code returns; `arguments` are in `A`.

        An error in it fails the test.
        """
        body = f"local A = vim.json.decode([==[{json.dumps(arguments)}]==])\n{code}"
        encoded = base64.b64encode(body.encode()).decode()
        call = f"luaeval('T.run(vim.base64.decode(_A))', '{encoded}')"
        done = subprocess.run(
            ["nvim", "--server", self._socket, "--remote-expr", call],
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=PATIENCE * 2,
            check=False,
        )
        # Remote expressions are printed on either stream, by version.
        output = (done.stdout or done.stderr).strip()
        assert done.returncode == 0, output
        reply = json.loads(output)
        assert "error" not in reply, reply["error"]
        return reply.get("value")

    def until(self, code: str, *arguments: object) -> Any:
        """What Lua code returns as soon as that is neither nil, false nor an empty table."""
        return self.lua(
            f"return T.wait({PATIENCE * 1000}, function() {code} end)",
            *arguments,
        )

    def edit(self, path: Path) -> None:
        """`:edit` the file and wait for the server to be attached to it."""
        self.lua("vim.cmd.edit(A[1])", str(path))
        self.until("return #vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' }) > 0")

    def place(self, text: str) -> None:
        """Put the cursor where `|` stands in a piece of the buffer's text."""
        self.lua("T.place(A[1])", text)

    def hover(self, says: str = "", *, says_not: str = "") -> str:
        """What the float of `vim.lsp.buf.hover` says, once it says one thing and not another."""
        shown: str = self.lua(f"return T.hover({PATIENCE * 1000}, A[1], A[2])", says, says_not)
        return shown

    def hints(self, *shown: str) -> dict[str, str]:
        """The labels of `T.shapes` by the text that they follow, once all of `shown` are drawn."""
        code = """
        local labels, shapes = {}, T.shapes()
        for _, label in pairs(T.hints()) do labels[label] = true end
        for _, wanted in ipairs(A) do if not labels[wanted] then return nil end end
        return next(shapes) and shapes
        """
        hints: dict[str, str] = self.until(code, *shown)
        return hints

    def keys(self, keys: str) -> None:
        """Press keys, as `<CR>` and `<Esc>` name them; nothing waits for what they do."""
        subprocess.run(
            ["nvim", "--server", self._socket, "--remote-send", keys],
            env=self._environment,
            timeout=PATIENCE,
            check=True,
            capture_output=True,
        )

    def draws(self, hints: Mapping[str, str]) -> None:
        """Wait until these are the hints of `T.shapes`, and no others: what an edit changes may
        come in several steps.
        """
        with suppress(AssertionError):
            self.until("return vim.deep_equal(T.shapes(), A[1])", hints)
        drawn = self.lua("return T.shapes()")
        assert drawn == hints, drawn

    def replace(self, old: str, new: str) -> None:
        """Edit the buffer as typing would: one change of its text."""
        self.lua("T.replace(A[1], A[2])", old, new)

    def text(self) -> str:
        return "\n".join(self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))


@contextmanager
def neovim(
    folder: Path,
    scratch: Path,
    setup: str | None = None,
    *,
    python: str = sys.executable,
    **variables: str,
) -> Iterator[Neovim]:
    """A Neovim in `folder` whose `jaxsight` is the one under test; it ends with the block.

    It is set up by Lua of one's own, or as the documentation says. The server runs with `python`;
    `variables` are of Neovim's environment.
    """
    commands = scratch / "bin"
    commands.mkdir()
    command = commands / "jaxsight"
    command.write_text(f'#!/bin/sh\nexec "{python}" -m jaxsight "$@"\n')
    command.chmod(0o755)
    init = scratch / "init.lua"
    init.write_text(documented_setup() if setup is None else setup, encoding="utf-8")
    socket = str(scratch / "nvim.sock")
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY / "server"),
        **{
            f"XDG_{kind}_HOME": str(scratch / kind.lower())
            for kind in ("CONFIG", "DATA", "STATE", "CACHE")
        },
        **variables,
    }
    process = subprocess.Popen(
        ["nvim", "--headless", "--clean", "--listen", socket, "-u", init, "-S", _LIBRARY],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    editor = Neovim(socket, environment)
    try:
        _wait_for(Path(socket), process)
        yield editor
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not socket.exists():
        assert process.poll() is None, "Neovim ended at once"
        assert time.monotonic() < deadline, "Neovim does not listen"
        time.sleep(0.02)
