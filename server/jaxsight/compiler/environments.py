"""Interpreters that compile: managed virtual environments of our own, in the user's cache folder.

Nothing is ever installed into an environment of the user's. For the machine's own CPU the user's interpreter compiles, as it is: its jaxlib is the truth. For
everything else there is an environment here, made by `install`, of the user's version of JAX where that can compile without a device.

An environment without its marker is half made: it is never used, and made anew. This module starts no compiler.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform as machine
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import platformdirs

from jaxsight.compiler.targets import CPU, Target, names

OLDEST = (0, 9, 0)
"""The oldest JAX that compiles for a GPU which is not here and shows what it made."""

LIBTPU = "0.0.50.1"
"""Seen to work with every JAX from 0.6.2 to 0.12."""

MEGABYTES = {"cuda": 290, "tpu": 360}
"""About what is downloaded: jaxlib and what it needs, and the plugin."""

_MARKER = "jaxsight.json"
_LOOK = 0.5
"""Seconds between two looks at how far an installation is, or at whether another process's is done."""

Progress = Callable[[str, int], None]
"""Told what is being done, and the megabytes that are on disk so far; 0 when a step begins."""


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
    plugin: str = ""
    """What compiles in it beside jaxlib, with its version: `libtpu 0.0.50.1`."""

    @property
    def managed(self) -> bool:
        """Whether it is ours, so that nothing of the user's environment may reach it."""
        return bool(self.folder)

    @property
    def variables(self) -> Mapping[str, str]:
        """What its compilers find in `os.environ`."""
        return variables(self.platform)


def variables(platform: str) -> Mapping[str, str]:
    """What the compilers of a platform (`here-cuda`: of this machine's GPU) find in `os.environ`."""
    shared = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
    match platform:
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
            return {"JAX_PLATFORMS": platform.removeprefix("here-") + ",cpu"}
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


def ready() -> list[str]:
    """The targets that can be compiled for here, this machine's CPU first."""
    there = {each.platform for platform in MEGABYTES for each in installed(platform)}
    return [
        name for name in names() if name == CPU or (":" in name and name.partition(":")[0] in there)
    ]


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
    with _locked(folder, progress):
        if (folder / _MARKER).is_file() and (there := _told(folder)) is not None:
            return there
        shutil.rmtree(folder, ignore_errors=True)
        progress(f"making an environment in {folder}", 0)
        _run([python, "-m", "venv", str(folder)], "the environment cannot be made")
        own = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        step = f"installing jax{wanted} (about {MEGABYTES[platform]} MB are downloaded in all)"
        _pip(own, [f"jax{wanted}"], folder, step, progress)
        have = _run(
            [own, "-c", "import importlib.metadata as m; print(m.version('jax'))"],
            "jax is not there",
        ).strip()
        plugin = _plugin(platform, own, have, folder, progress)
        environment = Environment(platform, own, have, str(folder), plugin)
        (folder / _MARKER).write_text(json.dumps(asdict(environment)), encoding="utf-8")
        return environment


def remove(environment: Environment) -> None:
    """Delete an environment of ours."""
    if environment.folder:
        with contextlib.suppress(OSError):
            Path(environment.folder, _MARKER).unlink()
        shutil.rmtree(environment.folder, ignore_errors=True)


def identity(environment: Environment, target: Target) -> tuple[str, ...]:
    """All that decides, beside the program, what a target's compiler makes of it."""
    if target.host:
        device = target.host
    elif target.chip is not None:
        device = repr(target.chip)
    else:
        device = _this_machine(target.platform)
    flags = (
        ()
        if target.host
        else (os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", ""))
    )
    return target.name, environment.platform, environment.jax, environment.plugin, device, *flags


@cache
def _this_machine(platform: str) -> str:
    """What its processor, or its GPUs and their driver, are called: machines may share the folder that the cache is in."""
    told = [machine.machine(), machine.processor()]
    if platform == "cpu":
        paths = [Path("/proc/cpuinfo")]
    else:
        paths = [
            *Path("/proc/driver/nvidia").glob("gpus/*/information"),
            Path("/proc/driver/nvidia/version"),
        ]
    for path in paths:
        with contextlib.suppress(OSError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            told += [
                x
                for x in dict.fromkeys(lines)
                if x.startswith(("model name", "flags", "Features", "Model", "NVRM"))
            ]
    return "\n".join(told)


def numbers(version: str) -> tuple[int, ...]:
    """`0.12.0.1` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _plugin(platform: str, python: str, jax: str, folder: Path, progress: Progress) -> str:
    """Install what compiles, alone: NVIDIA's libraries are for running. Its name and version."""
    step = f"installing the {platform} compiler"
    if platform == "tpu":
        _pip(python, ["--no-deps", f"libtpu=={LIBTPU}"], folder, step, progress)
        return f"libtpu {LIBTPU}"
    problem: InstallError | None = None
    for cuda in ("cuda13", "cuda12"):  # versions before 13 was out have 12 alone
        wanted = [f"jax-{cuda}-pjrt=={jax}", f"jax-{cuda}-plugin=={jax}"]
        try:
            _pip(python, ["--no-deps", *wanted], folder, step, progress)
        except InstallError as error:
            problem = problem or error
        else:
            return f"jax-{cuda}-plugin {jax}"
    assert problem is not None
    raise problem


def _pip(python: str, wanted: list[str], folder: Path, step: str, progress: Progress) -> None:
    """Install packages. Which index they are from, and through which proxy, is what pip is configured to."""
    progress(step, 0)
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    what = f"{' '.join(each for each in wanted if not each.startswith('-'))} cannot be installed"
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            [*command, "install", *wanted],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=_clean(),
        ) as running:
            while running.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(_LOOK)
                progress(step, _megabytes(folder))
        if running.returncode:
            said.seek(0)
            raise InstallError(_why(what, said.read().decode(errors="replace")))


_OFFLINE = re.compile(
    r"name resolution|NewConnectionError|Network is unreachable|ConnectTimeout|ProxyError|Max retries|from versions: none"
)


def _why(what: str, said: str) -> str:
    if _OFFLINE.search(said):
        return f"{what}: pip cannot reach its package index; is there a network?"
    lines = [line for line in said.strip().splitlines() if not line.startswith("WARNING")]
    return f"{what}: {' '.join(lines[-3:])}"


def _megabytes(folder: Path) -> int:
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - thousands
    return total // 1_000_000


def _clean() -> dict[str, str]:
    """Without the variables that would make another interpreter of one."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}


def _version(python: str) -> str:
    told = _run(
        [python, "-I", "-c", "import sys; print('py%d.%d' % sys.version_info[:2])"],
        f"{python} does not run",
    )
    return told.strip()


def _run(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env=_clean(),
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
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """One installation of a folder at a time, over processes; the system frees the lock of one that dies."""
    with folder.with_name(folder.name + ".lock").open("ab") as lock:
        waited = False
        while not _take(lock.fileno()):
            if not waited:
                progress("another process is installing it: waiting", 0)
            waited = True
            time.sleep(_LOOK)
        yield


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
