"""Python environments for compilers: virtual environments of our own in the user's cache folder.

Nothing is ever installed into the user's environments.
For the machine's own CPU, the user's environment compiles: its jaxlib is authoritative.
For all other targets, `install` creates an environment here, with the user's version of JAX if that
can compile without the device.
An environment without its marker is incomplete: it is not used, and created again.
An environment that another user could have created or changed is not used either.
This module starts no compiler.
"""

from __future__ import annotations

import contextlib
import json
import logging
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

from jaxsight.compiler import stand_ins
from jaxsight.files import private, reading
from jaxsight.targets.target import CPU, Target, names

OLDEST = (0, 9, 0)
"""The oldest JAX that can compile for a GPU that is not present and returns the optimized HLO."""

LIBTPU = "0.0.50.1"
"""Tested with JAX 0.6.2 to 0.12."""

MEGABYTES = {"cuda": 290, "tpu": 360}
"""Approximate size of the download: jaxlib with its dependencies, and the plugin."""

log = logging.getLogger(__name__)

_MARKER = "jaxsight.json"
_PYTHON = "Scripts/python.exe" if os.name == "nt" else "bin/python"
_UMASK = 0o077 if os.name == "posix" else -1
"""The umask of an installation: only the user has access."""
_LOOK = 0.5
"""Seconds between checks of the progress of an installation, or of another process's."""

Progress = Callable[[str, int], None]
"""Called with the current step, and the megabytes on disk so far; 0 when a step begins."""


class InstallError(Exception):
    """An environment could not be created; the message has the reason, and a remedy if known."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python environment that compiles for a platform."""

    platform: str
    python: str
    jax: str
    folder: str = ""
    """Its folder; empty for an environment that is not ours."""
    plugin: str = ""
    """Its compiler plugin with its version: `libtpu 0.0.50.1`."""

    @property
    def managed(self) -> bool:
        """Whether it is ours, so that no variables of the user's environment may reach it."""
        return bool(self.folder)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of its compilers."""
        return variables(self.platform)


def variables(platform: str) -> Mapping[str, str]:
    """Return the environment variables of the compilers of a platform.

    `here-cuda` is the platform of this machine's GPU.
    """
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


def compiler_variables(environment: Environment) -> Mapping[str, str]:
    """Return the environment variables of an environment's compilers on this machine."""
    found = dict(environment.variables)
    if environment.platform == "cuda" and (folder := _stand_ins()) is not None:
        found[stand_ins.VARIABLE] = str(folder)
    return found


def _stand_ins() -> Path | None:
    """Return the folder of this version's stand-ins, or `None` if it cannot be written."""
    folder = private.cache_folder("stand-ins")
    if folder is None:
        return None
    try:
        for name, content in stand_ins.FILES.items():
            file = folder / name
            if not (private.belongs_to_us(file) and _holds(file, content)):
                private.write(file, content, executable=True)
    except OSError as error:
        log.warning("cannot use %s: %s", folder, error)
        return None
    return folder


def _holds(file: Path, content: bytes) -> bool:
    try:
        return os.access(file, os.X_OK) and reading.data(file, reading.SMALL) == content
    except reading.UnreadableError:
        return False


def home() -> Path | None:
    """Return the folder of all environments, or `None` if the user has none.

    The variable `JAXSIGHT_COMPILERS` overrides it.
    """
    chosen = os.environ.get("JAXSIGHT_COMPILERS")
    return Path(chosen).absolute() if chosen else private.cache_folder("compilers")


def installed(platform: str) -> list[Environment]:
    """Return the complete and trustworthy environments of a platform, the newest JAX first."""
    folder = home()
    if folder is None:
        return []
    markers = reading.below(folder, f"{platform}-*/{_MARKER}")
    found = [there for marker in markers if (there := _kept(marker.parent)) is not None]
    return sorted(
        (each for each in found if each.platform == platform),
        key=lambda each: numbers(each.jax),
        reverse=True,
    )


def ready() -> list[str]:
    """Return the targets that can be compiled for on this machine, its own CPU first."""
    there = {each.platform for platform in MEGABYTES for each in installed(platform)}
    return [
        name for name in names() if name == CPU or (":" in name and name.partition(":")[0] in there)
    ]


def suiting(platform: str, jax: str) -> Environment | None:
    """Return the environment for programs lowered by a version of JAX, or `None`.

    This is the one with the same version, else the one with the next newer version.
    """
    there = installed(platform)
    for each in there:
        if each.jax == jax:
            return each
    later = [each for each in there if numbers(each.jax) >= numbers(jax)]
    return later[-1] if later else None


def install(platform: str, jax: str, python: str, progress: Progress) -> Environment:
    """Create the environment of a platform for a version of JAX.

    Args:
        platform: `cuda` or `tpu`.
        jax: the user's version; for versions before `OLDEST`, the newest one that supports their
            Python is installed.
        python: the Python executable that creates the environment, usually the user's.
        progress: called with each step.

    Raises:
        InstallError: there is no such version for this Python, or a network or disk error occurred.
    """
    if platform not in MEGABYTES:
        raise InstallError(
            f"unknown platform {platform}: compilers can be installed for cuda and tpu"
        )
    pinned = numbers(jax) >= OLDEST
    wanted = f"=={jax}" if pinned else ""
    top = home()
    if top is None:
        raise InstallError("no home folder to install into: set JAXSIGHT_COMPILERS to a folder")
    folder = top / f"{platform}-{jax if pinned else 'newest'}-{_version(python)}"
    with _locked(folder, progress):
        if (there := _kept(folder)) is not None:
            return there
        shutil.rmtree(folder, ignore_errors=True)
        progress(f"creating an environment in {folder}", 0)
        _run([python, "-m", "venv", str(folder)], "failed to create the environment")
        own = str(folder / _PYTHON)
        step = f"installing jax{wanted} (downloads about {MEGABYTES[platform]} MB in total)"
        _pip(own, [f"jax{wanted}"], folder, step, progress)
        have = _run(
            [own, "-c", "import importlib.metadata as m; print(m.version('jax'))"],
            "jax is not installed",
        ).strip()
        plugin = _plugin(platform, own, have, folder, progress)
        environment = Environment(platform, own, have, str(folder), plugin)
        try:
            private.write(folder / _MARKER, json.dumps(asdict(environment)).encode())
        except OSError as error:
            raise InstallError(f"cannot use the environment in {folder}: {error}") from error
        return environment


def remove(environment: Environment) -> None:
    """Delete one of our environments."""
    if environment.folder:
        with contextlib.suppress(OSError):
            Path(environment.folder, _MARKER).unlink()
        shutil.rmtree(environment.folder, ignore_errors=True)


def identity(environment: Environment, target: Target) -> tuple[str, ...]:
    """Return everything besides the program that determines the output of a target's compiler."""
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
    """Return the names of the processor, or of the GPUs and their driver.

    Machines may share the folder of the cache.
    """
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
            lines = reading.text(path, strict=False).splitlines()
            told += [
                x
                for x in dict.fromkeys(lines)
                if x.startswith(("model name", "flags", "Features", "Model", "NVRM"))
            ]
    return "\n".join(told)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version such as `0.12.0.1` as a tuple of numbers, for comparisons."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _plugin(platform: str, python: str, jax: str, folder: Path, progress: Progress) -> str:
    """Install the compiler plugin without dependencies, and return its name and version.

    NVIDIA's libraries are only needed to run programs.
    """
    step = f"installing the {platform} compiler"
    if platform == "tpu":
        _pip(python, ["--no-deps", f"libtpu=={LIBTPU}"], folder, step, progress)
        return f"libtpu {LIBTPU}"
    problem: InstallError | None = None
    for cuda in ("cuda13", "cuda12"):  # older versions support only CUDA 12
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
    """Install packages with the index and the proxy that pip is configured with."""
    progress(step, 0)
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    what = f"failed to install {' '.join(each for each in wanted if not each.startswith('-'))}"
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            [*command, "install", *wanted],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=_clean(),
            umask=_UMASK,
        ) as running:
            while running.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(_LOOK)
                progress(step, _megabytes(folder))
        if running.returncode:
            said.seek(0)
            raise InstallError(_why(what, said.read().decode(errors="replace")))


_OFFLINE = re.compile(
    r"name resolution|NewConnectionError|Network is unreachable|ConnectTimeout|ProxyError"
    r"|Max retries|from versions: none"
)


def _why(what: str, said: str) -> str:
    if _OFFLINE.search(said):
        return f"{what}: pip cannot reach its package index; check the network connection"
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
    """Return the environment variables without those that change which packages Python imports."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}


def _version(python: str) -> str:
    told = _run(
        [python, "-I", "-c", "import sys; print('py%d.%d' % sys.version_info[:2])"],
        f"cannot run {python}",
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
            umask=_UMASK,
        )
    except OSError as error:
        raise InstallError(f"{what}: {error}") from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise InstallError(f"{what}: {' '.join(words) or f'exit status {done.returncode}'}")
    return done.stdout


def _kept(folder: Path) -> Environment | None:
    """Return the environment in a folder, or `None` if incomplete or possibly another user's."""
    if not reading.exists(folder / _MARKER) or not reading.is_file(folder / _PYTHON):
        return None
    marker, programs = folder / _MARKER, (folder / _PYTHON).parent
    if not private.belongs_to_us(marker) or not private.belongs_to_us(programs):
        log.warning("ignoring the compilers in %s: other users can write there", folder)
        return None
    try:
        told = json.loads(reading.text(folder / _MARKER, reading.SMALL))
        found = Environment(**{**told, "python": str(folder / _PYTHON), "folder": str(folder)})
    except (reading.UnreadableError, ValueError, TypeError, RecursionError):
        return None  # written by another version of jaxsight, or corrupt
    if not all(isinstance(value, str) for value in asdict(found).values()):
        return None
    return found


@contextlib.contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Lock a folder, so that one process at a time installs into it.

    The system releases the lock of a process that dies.

    Raises:
        InstallError: the lock cannot be created, or other users can write there.
    """
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(private.lock_file(folder.with_name(folder.name + ".lock")))
        except OSError as error:
            raise InstallError(f"cannot install in {folder.parent}: {error}") from error
        waited = False
        while not _take(lock):
            if not waited:
                progress("waiting for another process that is installing it", 0)
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
