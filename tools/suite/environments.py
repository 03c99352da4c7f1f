"""What has to be installed for an environment, and whether this machine can have it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.suite.digests import Tree
from tools.suite.parts import (
    MINED,
    NEWEST,
    NOTEBOOKS,
    OLDER,
    OLDEST,
    PYTHON_314,
    ROOT,
    TABLES,
    UNPREPARED,
    VSCODE,
)

VENVS = ROOT / ".venvs"
IS_LINUX = sys.platform == "linux"

_DEBIAN = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_CACHES = 3
"""Folders that are kept, of up to 512 MiB: those of `main`, a branch and one before."""
_IN_USE = 24 * 3600
"""Seconds for which no run that uses a folder is taken to last."""

_PYTHONS = {
    NEWEST: ("3.12", "3.13"),
    NOTEBOOKS: ("3.12", "3.13"),
    TABLES: ("3.12", "3.13"),
    UNPREPARED: ("3.12", "3.13"),
    MINED: ("3.12", "3.13"),
    OLDER: ("3.11",),
    OLDEST: ("3.11",),
    PYTHON_314: ("3.14",),
}
"""The versions of Python that an environment is made with, of which one has to be here."""


@dataclass(frozen=True)
class Needs:
    """What `make` has to make for an environment, in two steps."""

    first: tuple[str, ...]
    """Targets that can be made beside `make lint`."""
    then: tuple[str, ...] = ()
    """Targets that cannot: they use the package manager of the system, or build the extension."""


def needs(environment: str) -> Needs:
    """Return the targets of an environment."""
    own = f".venvs/{environment}/.installed"
    match environment:
        case "test-py312" | "test-py311":
            # Nothing else than Linux has a compiler for an H100, or the editors of the tests.
            linux = (f".venvs/compilers/.{environment}", ".venvs/neovim/.installed")
            editors = (".venvs/servers/.installed",)
            return Needs((own, *_beside(), *(linux + editors if IS_LINUX else ())), ("emacs",))
        case "vscode":
            return Needs(
                # The server that VS Code starts traces with the newest JAX, and with another.
                (own, *needs(newest()).first, ".venvs/code-server/.installed"),
                ("vsix", "chromium"),
            )
        case "panel":
            return Needs(("vscode-extension/panel/node_modules/.installed",))
        case _:
            return Needs((own,))


def _beside() -> Iterator[str]:
    """Yield what some tests start besides their own environment, and are skipped without."""
    # Another Python and other JAX (`tests/workers`), and ruff.
    for name in (OLDER, OLDEST):
        if not missing(name):
            yield f".venvs/{name}/.installed"
    yield ".venvs/lint/.installed"


@cache
def has_python(*versions: str) -> bool:
    """Return whether this machine has one of some versions of Python."""
    found = subprocess.run(
        [ROOT / ".ci" / "find-python", *versions], capture_output=True, check=False
    )
    return found.returncode == 0


def missing(environment: str) -> str:
    """Return why this machine cannot have an environment, or nothing."""
    if environment == VSCODE and not IS_LINUX:
        return "Chromium and code-server are installed on Linux alone"
    if environment == PYTHON_314 and shutil.which("apt-get") and _DEBIAN.exists():
        return ""  # Debian's is unpacked
    versions = _PYTHONS.get(environment, ())
    if versions and not has_python(*versions):
        return f"no Python {' or '.join(versions)} found"
    return ""


def newest() -> str:
    """Return the environment with the newest JAX that this machine can have."""
    return OLDER if missing(NEWEST) else NEWEST


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other runs of the same checkout from making the same environments."""
    VENVS.mkdir(exist_ok=True)
    with (VENVS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Installation(threading.Thread):
    """Makes environments in the background, those that are needed first before the others."""

    def __init__(self, environments: Iterable[str], log: Path) -> None:
        super().__init__(daemon=True)
        self._wanted = [*dict.fromkeys(environments)]
        self._log = log
        self._done = {name: threading.Event() for name in self._wanted}
        self._failed: dict[str, bool] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Make the environments one after the other, each with as many processes as help."""
        for name in self._wanted:
            made = False
            try:
                targets = needs(name)
                # Not side by side: two calls of `make` would make the same environment twice.
                with _alone():
                    made = self._make(targets.first, jobs=4) and self._make(targets.then, jobs=1)
            finally:
                # Whatever happens, jobs that wait for it go on.
                self._failed[name] = not made
                self._done[name].set()

    def _make(self, targets: Sequence[str], jobs: int) -> bool:
        if not targets:
            return True
        command = ["make", "--no-print-directory", f"--jobs={jobs}", *targets]
        with self._log.open("ab") as log:
            done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=False)
        return done.returncode == 0

    def is_ready(self, environment: str) -> bool:
        """Return whether an environment was made, or could not be, or was not asked for."""
        return environment not in self._done or self._done[environment].is_set()

    def has_failed(self, environment: str) -> bool:
        """Return whether an environment could not be made."""
        return self._failed.get(environment, False)


def python(environment: str) -> Path:
    """Return the interpreter of an environment."""
    return VENVS / environment / "bin" / "python"


def cache_folder() -> Path:
    """Return the folder that keeps what tests compiled for the next run.

    An entry is named after all that its program depends on, but not after the code that read it. So
    each version of that code has a folder of its own; the last few are kept.
    """
    row = Tree().row("compiler")
    top = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "jaxsight-tests")
    own = top / f"{row.own}-{row.imports}"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    own.touch()
    with suppress(FileNotFoundError):  # another run removes them, too
        by_age = sorted(top.iterdir(), key=lambda folder: folder.stat().st_mtime)
        for old in by_age[:-_CACHES]:
            if time.time() - old.stat().st_mtime > _IN_USE:
                shutil.rmtree(old, ignore_errors=True)
    return own


def variables(environment: str) -> Mapping[str, str]:
    """Return what tests find in their environment besides what this process has."""
    found = {"INLINE_SNAPSHOT_DEFAULT_FLAGS": "disable"}
    if IS_LINUX:
        found["PATH"] = f"{VENVS / 'neovim' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # Some tests run the server on one Python and the tracer on another.
    others = [each for each in (OLDER, OLDEST, NEWEST) if each not in (environment, newest())]
    if environment == OLDER:
        others = [NEWEST]
    made = [python(name) for name in others if (VENVS / name / ".installed").exists()]
    if made:
        found["JAXSIGHT_OTHER_PYTHON"] = str(made[0])
    if environment == VSCODE:
        chromium = subprocess.run(
            [ROOT / ".ci" / "chromium"], stdout=subprocess.PIPE, text=True, check=False
        )
        found["CHROMIUM"] = chromium.stdout.strip()
        found["JAXSIGHT_PYTHON"] = str(python(newest()))
    return found
