"""A real VS Code as a server for browsers, with the packaged extension installed as a person
installs it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 90
"""Seconds until something that was to happen counts as not happening; starting JAX on a busy
machine is part of it.
"""

_NODE = REPOSITORY / ".venvs" / "node" / "bin" / "node"
_ENTRY = REPOSITORY / ".venvs" / "code-server" / "out" / "node" / "entry.js"
_VSIX = REPOSITORY / "dist" / "jaxsight.vsix"
_STAND_IN = Path(__file__).with_name("python-extension")

# Quiet, and nothing between the keyboard and the text.
_SETTINGS: dict[str, object] = {
    "chat.commandCenter.enabled": False,
    "chat.disableAIFeatures": True,
    "editor.accessibilitySupport": "off",
    "editor.autoClosingBrackets": "never",
    "editor.autoIndent": "none",
    "editor.minimap.enabled": False,
    "editor.stickyScroll.enabled": False,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "files.hotExit": "off",
    "security.workspace.trust.startupPrompt": "never",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.dialogStyle": "custom",
    "workbench.enableExperiments": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}


class CodeServer:
    """One running server; its windows are pages of a browser."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self.port = port
        self._process = process

    def processes(self, *words: str) -> list[psutil.Process]:
        """Those that VS Code has started, its extensions' included, whose command lines hold all
        the words.
        """
        found = []
        for process in self._process.children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.NoSuchProcess:
                continue
            if all(any(word in part for part in line) for word in words):
                found.append(process)
        return found


@contextmanager
def code_server(
    scratch: Path,
    *,
    asks_for_trust: bool = False,
    extensions: Sequence[Path] = (),
    commands: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[CodeServer]:
    """A server with our extension, a stand-in for the Python extension, and those in some folders;
    it ends with the block, and all that it started. Programs in the folder `commands` go before
    those on `PATH`; `variables` are of its environment.
    """
    for needed in (_NODE, _ENTRY, _VSIX):
        assert needed.exists(), f"{needed} is missing: `make test-all PART=vscode` makes it"
    user = scratch / "user"
    for level in ("User", "Machine"):
        (user / level).mkdir(parents=True)
        (user / level / "settings.json").write_text(json.dumps(_SETTINGS), encoding="utf-8")
    environment = {**_environment(scratch, commands), **(variables or {})}
    command = [
        _NODE,
        _ENTRY,
        f"--user-data-dir={user}",
        f"--extensions-dir={scratch / 'extensions'}",
    ]
    packages = [
        _packed(folder, scratch / f"{folder.name}.vsix") for folder in (_STAND_IN, *extensions)
    ]
    installed = [f"--install-extension={package}" for package in (*packages, _VSIX)]
    subprocess.run(
        [*command, *installed],
        env=environment,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    port = _free_port()
    trust = [] if asks_for_trust else ["--disable-workspace-trust"]
    quiet = ["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"]
    with (scratch / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--bind-addr=127.0.0.1:{port}", "--auth=none", *quiet, *trust],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    root = psutil.Process(process.pid)
    try:
        _wait_for(port, process)
        yield CodeServer(port, root)
    finally:
        family = [*root.children(recursive=True), root]
        for member in family:
            with _gone_is_fine():
                member.terminate()
        _, alive = psutil.wait_procs(family, timeout=10)
        for member in alive:
            with _gone_is_fine():
                member.kill()
        process.wait(PATIENCE)


def _environment(scratch: Path, commands: Path | None) -> Mapping[str, str]:
    home = scratch / "home"
    home.mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        # What other tests decided about folders is not this person's decision.
        if not name.startswith(("VSCODE_", "XDG_", "PYTEST_", "JAXSIGHT_TRUST"))
    }
    first = [str(commands)] if commands is not None else []
    # VS Code asks the person's shell for its variables, if it can; Debian's shells begin with a
    # `PATH` of their own.
    path = "".join(f"{each}:" for each in first)
    (home / ".profile").write_text(f'PATH="{path}$PATH"\n', encoding="utf-8")
    return {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
        # A Python for the server where the folder has not told one: this one, which has no JAX.
        "PATH": os.pathsep.join([*first, str(Path(sys.executable).parent), os.environ["PATH"]]),
        "EXTENSIONS_GALLERY": "{}",
    }


def _packed(folder: Path, target: Path) -> Path:
    """An extension's folder as a package."""
    with zipfile.ZipFile(target, "w") as package:
        for file in folder.iterdir():
            package.write(file, f"extension/{file.name}")
    return target


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess:
        return


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "VS Code ended at once"
        try:
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except (URLError, OSError):
            assert time.monotonic() < deadline, "VS Code does not answer"
            time.sleep(0.1)
