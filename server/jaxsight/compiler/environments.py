"""Interpreters that compile: managed virtual environments of our own, in the user's cache folder.

Nothing is ever installed into an environment of the user's. For the machine's own CPU the user's interpreter compiles, as it is: its jaxlib is the truth. For
everything else there is an environment here, made by `install`, of the user's version of JAX where that can compile without a device.

An environment without its marker is half made: it is never used, and made anew. This module starts no compiler.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

OLDEST = (0, 9, 0)
"""The oldest JAX that compiles for a GPU which is not here and shows what it made."""

LIBTPU = "0.0.50.1"
"""Seen to work with every JAX from 0.6.2 to 0.12."""

MEGABYTES = {"cuda": 290, "tpu": 360}
"""About what is downloaded: jaxlib and what it needs, and the plugin."""

_MARKER = "jaxsight.json"
_STALE_LOCK = 3600.0
"""Seconds after which the lock of an installation that never ended counts for nothing."""

Progress = Callable[[str], None]


class InstallError(Exception):
    """An environment could not be made; the text says why, and what helps."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter that compiles for a platform."""

    platform: str
    python: str
    jax: str
    folder: str = ""
    """Where it lies; empty for an interpreter that is not ours."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What its compilers find in `os.environ`."""
        shared = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
        match self.platform:
            case "cuda":
                return {
                    **shared,
                    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
                    "CUDA_VISIBLE_DEVICES": "",
                }
            case "tpu":
                return {
                    **shared,
                    "TPU_SKIP_MDS_QUERY": "1",
                    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
                    "TPU_LOG_DIR": "disabled",
                    "TPU_STDERR_LOG_LEVEL": "3",
                    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
                    "TPU_WORKER_HOSTNAMES": "localhost",
                }
            case "here-cuda" | "here-rocm" | "here-tpu":
                return {"JAX_PLATFORMS": self.platform.removeprefix("here-") + ",cpu"}
            case _:
                return shared


def home() -> Path:
    """The folder of all environments; `JAXSIGHT_COMPILERS` names another one."""
    given = os.environ.get("JAXSIGHT_COMPILERS")
    return Path(given) if given else Path(platformdirs.user_cache_dir("jaxsight")) / "compilers"


def installed(platform: str) -> list[Environment]:
    """The environments of a platform that are whole, the newest JAX first."""
    found = []
    for marker in home().glob(f"{platform}-*/{_MARKER}"):
        try:
            told = Environment(**json.loads(marker.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue  # written by another version of jaxsight, or broken: as good as not there
        if told.platform == platform and Path(told.python).exists():
            found.append(told)
    return sorted(found, key=lambda each: numbers(each.jax), reverse=True)


def suiting(platform: str, jax: str) -> Environment | None:
    """The environment that compiles what this version of JAX lowered: the same version, else the nearest later one."""
    there = installed(platform)
    for each in there:
        if each.jax == jax:
            return each
    later = [each for each in there if numbers(each.jax) >= numbers(jax)]
    return later[-1] if later else None


def install(platform: str, jax: str, python: str, progress: Progress) -> Environment:
    """Make the environment of a platform for a version of JAX.

    Args:
        platform: `cuda` or `tpu`.
        jax: the user's version; versions before `OLDEST` get the newest that their Python can have.
        python: an interpreter to make it with, usually the user's.
        progress: told what is being done.

    Raises:
        InstallError: there is no such version for this Python, no network, no room…
    """
    if platform not in MEGABYTES:
        raise InstallError(
            f"there is nothing to install for {platform}: cuda and tpu are what there is"
        )
    pinned = numbers(jax) >= OLDEST
    wanted = f"=={jax}" if pinned else ""
    folder = home() / f"{platform}-{jax if pinned else 'newest'}-{_version(python)}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if (folder / _MARKER).is_file() and (there := _told(folder)) is not None:
            return there
        shutil.rmtree(folder, ignore_errors=True)
        progress(f"making an environment in {folder}")
        _run([python, "-m", "venv", str(folder)], "the environment cannot be made")
        own = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        progress(f"installing jax{wanted}, about {MEGABYTES[platform]} MB in all")
        _pip(own, [f"jax{wanted}"])
        have = _run(
            [own, "-c", "import importlib.metadata as m; print(m.version('jax'))"],
            "jax is not there",
        ).strip()
        progress(f"installing the {platform} compiler")
        if platform == "tpu":
            _pip(own, ["--no-deps", f"libtpu=={LIBTPU}"])
        else:
            _cuda(own, have)
        environment = Environment(platform, own, have, str(folder))
        (folder / _MARKER).write_text(json.dumps(asdict(environment)), encoding="utf-8")
        return environment


def remove(environment: Environment) -> None:
    """Delete an environment of ours."""
    if environment.folder:
        with contextlib.suppress(OSError):
            Path(environment.folder, _MARKER).unlink()
        shutil.rmtree(environment.folder, ignore_errors=True)


def numbers(version: str) -> tuple[int, ...]:
    """`0.12.0.1` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _cuda(python: str, jax: str) -> None:
    """The plugin alone: NVIDIA's libraries are for running, not for compiling."""
    try:
        _pip(python, ["--no-deps", f"jax-cuda13-pjrt=={jax}", f"jax-cuda13-plugin=={jax}"])
    except InstallError as first:
        try:
            _pip(python, ["--no-deps", f"jax-cuda12-pjrt=={jax}", f"jax-cuda12-plugin=={jax}"])
        except InstallError:
            raise first from None


def _pip(python: str, wanted: list[str]) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    _run([*command, "install", *wanted], f"{' '.join(wanted)} cannot be installed")


def _version(python: str) -> str:
    told = _run(
        [python, "-I", "-c", "import sys; print('py%d.%d' % sys.version_info[:2])"],
        f"{python} does not run",
    )
    return told.strip()


def _run(command: list[str], what: str) -> str:
    # Variables that would make another interpreter of it stay out.
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env=environ,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise InstallError(f"{what}: {error}") from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise InstallError(f"{what}: {' '.join(words) or f'exit status {done.returncode}'}")
    return done.stdout


def _told(folder: Path) -> Environment | None:
    try:
        return Environment(**json.loads((folder / _MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One installation of a folder at a time, over processes."""
    lock = folder.with_name(folder.name + ".lock")
    while True:
        try:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > _STALE_LOCK:
                    lock.unlink()
            time.sleep(0.5)
    try:
        os.close(descriptor)
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
