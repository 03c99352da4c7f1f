"""Install compilers: create their Python environments, and delete them.

Nothing is ever installed into the user's environments.
An installation has the user's version of JAX, if that can compile without the device.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from jaxsight.files import private
from jaxsight.files.locks import try_lock
from jaxsight.targets.own import plugins
from jaxsight.workers.compilation.environments import (
    MARKER,
    MEGABYTES,
    PYTHON_PATH,
    CompilerEnvironment,
    home,
    numbers,
    usable,
)
from jaxsight.workers.own_python import OwnPython, isolated, with_packages

OLDEST = (0, 9, 0)
"""The oldest JAX that compiles for an absent GPU and returns its HLO: 0.8.3 raises in `as_text`."""

LIBTPU = "0.0.50.1"
"""Tested with JAX 0.6.2 to 0.12."""

_UMASK = 0o077 if os.name == "posix" else -1
"""The umask of an installation: only the user has access."""

_CHECK_PAUSE = 0.5
"""Seconds between checks of the progress of an installation, or of another process's: a choice,
each walks the folder of thousands of files."""

_LAST_WORK = 5.0
"""Seconds in which an interrupted pip removes its temporary files, a choice; then it is killed, and
a later installation starts in an empty folder."""

_DEFAULT_ORIGIN = "pypi.org"

_VERSION = "import sys; print('py%d.%d' % sys.version_info[:2])"
_VERSION_OF_JAX = "import importlib.metadata as m; print(m.version('jax'))"

Progress = Callable[[str, int], None]
"""Called with the current step, and the megabytes on disk so far, or 0 before they are counted.

It is called about twice in a second. An exception that it raises ends the installation.
"""

Pip = tuple[str, ...]
"""A Python with the arguments that run pip."""


class InstallError(Exception):
    """An environment could not be created; the message has the reason, and a remedy if known."""


def install(platform: str, jax: str, python: str, progress: Progress) -> CompilerEnvironment:
    """Create the environment of a platform for a version of JAX.

    Args:
        platform: `cuda` or `tpu`.
        jax: the user's version; for versions before `OLDEST`, the newest one that supports their
            Python is installed.
        python: the Python executable that creates the environment, usually the user's.
        progress: called with each step. What it raises ends the installation, and leaves nothing.

    Raises:
        InstallError: there is no such version for this Python, or a network or disk error occurred.
    """
    if platform not in MEGABYTES:
        raise InstallError(
            f"unknown platform {platform}: compilers can be installed for cuda and tpu"
        )
    is_pinned = numbers(jax) >= OLDEST
    requirement = f"=={jax}" if is_pinned else ""
    top = home()
    if top is None:
        raise InstallError("no home folder to install into: set JAXSIGHT_COMPILERS to a folder")
    version = _run(isolated(python, "-c", _VERSION), f"cannot run {python}").strip()
    folder = top / f"{platform}-{jax if is_pinned else 'newest'}-{version}"
    with _locked(folder, progress):
        if (environment := usable(folder)) is not None:
            return environment
        shutil.rmtree(folder, ignore_errors=True)
        try:
            return _create(folder, platform, requirement, python, progress)
        # `progress` may raise anything to end it; what is incomplete goes.
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _create(
    folder: Path, platform: str, requirement: str, python: str, progress: Progress
) -> CompilerEnvironment:
    """Create an environment in a folder that does not exist."""
    step = f"creating an environment in {folder}"
    progress(step, 0)
    pip = _empty(folder, python, lambda: progress(step, 0))
    program = str(folder / PYTHON_PATH)
    step = f"installing jax{requirement} (downloads about {MEGABYTES[platform]} MB in total)"
    _pip(pip, [f"jax{requirement}"], folder, step, progress)
    version = _run(isolated(program, "-c", _VERSION_OF_JAX), "JAX is not installed").strip()
    plugin = _plugin(platform, pip, version, folder, progress)
    environment = CompilerEnvironment(platform, program, version, str(folder), plugin)
    try:
        private.write(folder / MARKER, json.dumps(asdict(environment)).encode())
    except OSError as error:
        raise InstallError(f"cannot use the environment in {folder}: {error}") from error
    return environment


def _empty(folder: Path, python: str, tick: Callable[[], None]) -> Pip:
    """Create an environment without packages, and return the pip that installs into it.

    It is the environment's own, or where Python has no `ensurepip`, as on Debian without
    `python3-venv`, that of the user's Python or of this one.
    """
    program, create = str(folder / PYTHON_PATH), ("-m", "venv", str(folder))
    problem = "failed to create the environment"
    try:
        _run(isolated(python, *create), problem, tick)
    except InstallError:
        for other in _with_pip(python):
            pip = (other, "-m", "pip", "--python", program)
            with contextlib.suppress(InstallError):
                _run(isolated(python, *create, "--clear", "--without-pip"), problem, tick)
                _run(isolated(*pip, "--version"), f"{other} has no pip", tick)
                return pip
        raise
    return program, "-m", "pip"


def _with_pip(python: str) -> tuple[str, ...]:
    """Return the Pythons whose pip may be used: the user's own first."""
    return tuple(dict.fromkeys((python, sys.executable)))


def installed_jax(python: str) -> tuple[str, tuple[str, ...]]:
    """Return the version of JAX that a Python environment has, and the platforms of its plugins.

    JAX is not imported.

    Raises:
        InstallError: it has none, or cannot be run.
    """
    printed = _run(with_packages(python, str(plugins.__file__)), f"{python} has no JAX")
    found = json.loads(printed)
    return found["jax"], tuple(found["plugins"])


def origin(python: str) -> str:
    """Return where pip downloads from: the host or the folder of its package index.

    Args:
        python: the Python executable whose pip has the configuration.
    """
    listed = ""
    for each in _with_pip(python):
        with contextlib.suppress(InstallError):
            listed = _run(with_packages(each, "-m", "pip", "config", "list"), "no pip")
            break
    # Lines such as `global.index-url='https://…'`.
    values = dict(re.findall(r"^(\S+)='(.*)'$", listed, re.MULTILINE))
    values.setdefault(":env:.index-url", os.environ.get("PIP_INDEX_URL", ""))
    # In this order, as pip's documentation of its configuration says.
    for section in (":env:", "install", "global"):
        if url := values.get(f"{section}.index-url", ""):
            return urlsplit(url).hostname or urlsplit(url).path or _DEFAULT_ORIGIN
    return _DEFAULT_ORIGIN


def remove(environment: CompilerEnvironment) -> None:
    """Delete one of our environments."""
    if environment.folder:
        with contextlib.suppress(OSError):
            # First, so that a folder that is deleted in part counts as incomplete.
            Path(environment.folder, MARKER).unlink()
        shutil.rmtree(environment.folder, ignore_errors=True)


def _plugin(platform: str, pip: Pip, jax: str, folder: Path, progress: Progress) -> str:
    """Install the compiler plugin without dependencies, and return its name and version.

    NVIDIA's libraries are only needed to run programs.
    """
    step = f"installing the {platform} compiler"
    if platform == "tpu":
        _pip(pip, ["--no-deps", f"libtpu=={LIBTPU}"], folder, step, progress)
        return f"libtpu {LIBTPU}"
    problem: InstallError | None = None
    for cuda in ("cuda13", "cuda12"):  # older versions support only CUDA 12
        requirements = [f"jax-{cuda}-pjrt=={jax}", f"jax-{cuda}-plugin=={jax}"]
        try:
            _pip(pip, ["--no-deps", *requirements], folder, step, progress)
        except InstallError as error:
            problem = problem or error
        else:
            return f"jax-{cuda}-plugin {jax}"
    assert problem is not None
    raise problem


def _pip(pip: Pip, requirements: list[str], folder: Path, step: str, progress: Progress) -> None:
    """Install packages with the index and the proxy that pip is configured with."""
    progress(step, 0)
    options = ("--disable-pip-version-check", "--quiet", "--no-input")
    names = [argument for argument in requirements if not argument.startswith("-")]
    _run(
        isolated(*pip, *options, "install", *requirements),
        f"failed to install {' '.join(names)}",
        lambda: progress(step, megabytes(folder)),
    )


_REASONS = (
    (
        re.compile(
            r"name resolution|NewConnectionError|Network is unreachable|ConnectTimeout|ProxyError"
            r"|Max retries|from versions: none"
        ),
        "pip cannot reach its package index; check the network connection",
    ),
    (
        re.compile(r"unknown option: -P\b", re.IGNORECASE),
        "it is older than Python 3.11; choose another interpreter",
    ),
    (
        re.compile(r"No space left on device|Errno 28|Errno 122|WinError 112"),
        "no space is left on the disk",
    ),
    (
        re.compile(r"No module named '?(venv|ensurepip|pip)\b|ensurepip\s+is\s+not\s+available"),
        "this Python has no `venv` or `pip` (Debian: python3-venv); choose another interpreter",
    ),
)
"""Patterns of what Python and pip print, and what they mean."""


def _reason(output: str) -> str:
    """Return why a command failed, from its output; empty if it printed nothing."""
    for pattern, reason in _REASONS:
        if pattern.search(output):
            return reason
    lines = [line for line in output.strip().splitlines() if not line.startswith("WARNING")]
    return " ".join(lines[-3:])


def megabytes(folder: Path) -> int:
    """Return the size of a folder on disk in megabytes."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - thousands
    return total // 1_000_000


def _run(process: OwnPython, error_prefix: str, tick: Callable[[], None] = lambda: None) -> str:
    """Run a process and return its output; call `tick` meanwhile, which may end it by raising.

    Raises:
        InstallError: it cannot be run, or failed.
    """
    try:
        with (
            # Files, as nobody reads a pipe meanwhile: once full, it would stop the process.
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                process.command,
                cwd=process.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=process.environment,
                umask=_UMASK,
                # A group of its own, so that `_end` reaches what pip has started.
                process_group=0 if os.name == "posix" else None,
            ) as running,
        ):
            try:
                while running.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        running.wait(_CHECK_PAUSE)
                    tick()
            except BaseException:
                _end(running)
                raise
            output.seek(0)
            errors.seek(0)
            text, error_text = (each.read().decode(errors="replace") for each in (output, errors))
    except OSError as error:
        raise InstallError(f"{error_prefix}: {_reason(str(error))}") from error
    if running.returncode:
        reason = _reason(f"{text}\n{error_text}".strip())
        raise InstallError(f"{error_prefix}: {reason or f'exit status {running.returncode}'}")
    return text


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a command with its processes; pip removes its temporary files when interrupted."""
    if sys.platform == "win32":
        running.terminate()
        return
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(_LAST_WORK)


@contextlib.contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Lock a folder, so that one process at a time installs into it.

    The system releases the lock of a process that dies.

    Raises:
        InstallError: the lock cannot be created, or other users can write there.
    """
    with contextlib.ExitStack() as stack:
        try:
            # Beside the folder, which is deleted and made again while the lock is held.
            lock = stack.enter_context(private.lock_file(folder.with_name(folder.name + ".lock")))
        except OSError as error:
            raise InstallError(f"cannot install in {folder.parent}: {error}") from error
        while not try_lock(lock):
            progress("waiting for another process that is installing it", 0)
            time.sleep(_CHECK_PAUSE)
        yield
