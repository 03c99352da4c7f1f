"""Python environments with other versions of JAX, made once and kept.

They have JAX, its dependencies and nothing else. `pip` installs them, from the package index that
the user's own configuration of it names.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import private
from jaxsight.files.locks import try_lock
from jaxsight.repro import running
from jaxsight.repro.failures import FINISHED
from jaxsight.workers.compilation.environments import numbers
from jaxsight.workers.own_python import OwnPython, isolated

_MOST_SECONDS = 900.0
"""For an installation, chosen: fewer end a download of CUDA's libraries (3 GB) over a slow line,
more keep the user waiting for an index that does not answer."""
_VERSIONS = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_NUMPY_2 = (0, 4, 26)
"""The first version of JAX that works with NumPy 2, numpy#26191."""

_PLATFORM = """
import platform, sys
print(sys.implementation.cache_tag, sys.platform, platform.machine(), sep="-")
"""
_PACKAGE_FOLDERS = """
import os, sys
names = ("site-packages", "dist-packages")
print(*(path for path in sys.path if os.path.basename(path) in names), sep="\\0", end="")
"""
_PACKAGES = "lib/python3*/site-packages"
_QUIET = ("--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "20")


class Unavailable(Exception):
    """An environment cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Environments:
    """The managed environments of one interpreter.

    Attributes:
        folder: where they are kept, for the user alone.
        python: the interpreter that makes them.
        platform: the version and the platform of the interpreter, a prefix of names.
        offline: whether only existing ones are used.
    """

    folder: Path
    python: str
    platform: str
    offline: bool

    @staticmethod
    def of(folder: Path, python: str, offline: bool) -> Environments:
        """Return the environments of an interpreter.

        Raises:
            Unavailable: the interpreter does not run.
        """
        platform = _run(isolated(python, "-c", _PLATFORM)).stdout.strip()
        return Environments(folder, python, platform, offline)

    def available(self) -> list[str]:
        """Return the versions of jaxlib that can be used, the oldest first.

        Those are, offline, the installed ones.

        Raises:
            Unavailable: they cannot be listed.
        """
        if self.offline:
            start = f"{self.platform}-jax"
            names = [path.name for path in self.folder.glob(f"{glob.escape(start)}*")]
            return sorted((name.removeprefix(start) for name in names), key=numbers)
        with self._locked():
            ran = self._pip("index", "versions", "jaxlib", *_QUIET)
        listed = _VERSIONS.search(ran.stdout)
        if listed is None:
            reason = _last_line(ran.stderr) or "no output"
            raise Unavailable(f"no package index lists the versions of jaxlib ({reason})")
        return sorted((text.strip() for text in listed[1].split(",")), key=numbers)

    def interpreter(self, version: str) -> str:
        """Return the path of an interpreter with this version of JAX and jaxlib.

        Raises:
            Unavailable: it cannot be made.
        """
        made = self.folder / f"{self.platform}-jax{version}"
        python = _python_of(made)
        with self._locked():
            if not python.exists():
                if self.offline:
                    raise Unavailable("not installed, and offline")
                self._make(made, version)
        return str(python)

    def interpreter_over(self, version: str) -> str:
        """Return the path of an interpreter with this version of JAX, and the others' packages.

        JAX and what it depends on are links to the environment of the version; everything else,
        such as Flax and the project itself, is that of the interpreter.

        Raises:
            Unavailable: it cannot be made.
        """
        base = Path(self.interpreter(version)).parents[1]
        folders = _run(isolated(self.python, "-c", _PACKAGE_FOLDERS)).stdout.split("\0")
        name = hashlib.sha256("\0".join([self.python, *folders]).encode()).hexdigest()[:12]
        made = base.with_name(f"{base.name}-over-{name}")
        unfinished = made.with_name(f"{private.UNFINISHED}{made.name}")
        with self._locked():
            if _python_of(made).exists():
                return str(_python_of(made))
            shutil.rmtree(unfinished, ignore_errors=True)
            try:
                _run(isolated(self.python, "-m", "venv", "--without-pip", str(unfinished)))
                (own,) = unfinished.glob(_PACKAGES)
                for entry in (
                    each for packages in base.glob(_PACKAGES) for each in packages.iterdir()
                ):
                    (own / entry.name).symlink_to(entry)
                # `addsitedir` reads the `.pth` files of a folder, too: those of editable installs.
                calls = "; ".join(f"site.addsitedir({folder!r})" for folder in folders if folder)
                (own / "others.pth").write_text(f"import site; {calls}\n", encoding="utf-8")
                unfinished.rename(made)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return str(_python_of(made))

    def _make(self, made: Path, version: str) -> None:
        unfinished = made.with_name(f"{private.UNFINISHED}{made.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        wanted = [f"jax=={version}", f"jaxlib=={version}"]
        if numbers(version) < _NUMPY_2:
            wanted += ["numpy<2", "scipy<1.13"]
        arguments = ("install", "--quiet", "--only-binary", ":all:", *_QUIET, *wanted)
        try:
            _run(isolated(self.python, "-m", "venv", "--without-pip", str(unfinished)))
            ran = self._pip("--python", str(_python_of(unfinished)), *arguments)
            if ran.failure.kind != FINISHED:
                raise Unavailable(f"cannot install jax {version} ({_last_line(ran.stderr)})")
            unfinished.rename(made)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _pip(self, *arguments: str) -> running.FinishedRun:
        """Run the pip of an environment that has pip alone, as the user's may have none."""
        tools = self.folder / f"{self.platform}-pip"
        if not _python_of(tools).exists():
            _run(isolated(self.python, "-m", "venv", str(tools)))
        pip = isolated(str(_python_of(tools)), "-m", "pip", *arguments)
        return running.run_own(pip, timeout=_MOST_SECONDS)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait until no other process changes the folder.

        Raises:
            Unavailable: the folder cannot be changed.
        """
        deadline = time.monotonic() + _MOST_SECONDS
        try:
            with private.lock_file(self.folder / "lock") as descriptor:
                while not try_lock(descriptor):
                    if time.monotonic() > deadline:
                        raise Unavailable(f"{self.folder} is locked by another process")
                    time.sleep(0.2)
                yield
        except OSError as error:
            raise Unavailable(f"cannot use {self.folder}: {error}") from None


def _run(process: OwnPython) -> running.FinishedRun:
    try:
        ran = running.run_own(process, timeout=_MOST_SECONDS)
    except OSError as error:
        raise Unavailable(f"cannot start {process.command[0]}: {error}") from None
    if ran.failure.kind != FINISHED:
        raise Unavailable(_last_line(ran.stderr) or _last_line(ran.stdout) or ran.failure.headline)
    return ran


def _python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:200] if lines else ""
