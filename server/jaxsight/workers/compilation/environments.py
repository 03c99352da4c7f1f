"""Python environments for compilers: virtual environments of our own in the user's cache folder.

For the machine's own CPU, the user's environment compiles: its jaxlib is authoritative.
For all other targets, an installed environment does (see `installation`).
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
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from jaxsight.files import private, reading
from jaxsight.targets.own.devices import own_device
from jaxsight.targets.target import CPU, Target, names
from jaxsight.text.terminal import instruction
from jaxsight.wire import frames
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled
from jaxsight.wire.messages.replies import Hello
from jaxsight.workers.child import ChildProcess
from jaxsight.workers.own_python import OwnPython, booted, with_packages

MEGABYTES = {"cuda": 290, "tpu": 360}
"""Approximate size of the download: jaxlib with its dependencies (147 MB), and the CUDA plugin's
two wheels (143 MB) or libtpu (214 MB)."""

log = logging.getLogger(__name__)

MARKER = "jaxsight.json"
"""The file that a complete environment has; it holds the `CompilerEnvironment`."""
PYTHON_PATH = "Scripts/python.exe" if os.name == "nt" else "bin/python"


@dataclass(frozen=True, slots=True)
class CompilerEnvironment:
    """A Python environment that compiles for a platform."""

    platform: str
    python: str
    jax: str
    folder: str = ""
    """Its folder; empty for an environment that is not ours."""
    plugin: str = ""
    """Its compiler plugin with its version: `libtpu 0.0.50.1`."""


_WITH_HOOK = (0, 10, 2)
"""The first JAX with `jax.extend.xla.register_hlo_module_transformation`."""


def installing(platform: str) -> str:
    """Return how the compiler of a platform is installed."""
    return instruction(f"targets install {platform}", "use *Install Compiler*")


def ends_early(target: Target, environment: CompilerEnvironment) -> bool:
    """Return whether compiles for a target can end before code generation: kernels are known then.

    This is decided before a compiler has started, see `jaxsight.compiler.compat.schedule` for this
    machine's CPU, and `dumps` there for GPUs that are not present.
    """
    is_absent_gpu = target.platform == "cuda" and not target.is_own and not target.host
    return (target.name == CPU or is_absent_gpu) and numbers(environment.jax) >= _WITH_HOOK


def assigns_memory_early(target: Target) -> bool:
    """Return whether the size of temporaries is known if a compile for a target ends early."""
    return target.platform == "cuda" and not target.is_own


_FRUGAL = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}
"""Variables of compilers on this machine's GPU, which running programs need: XLA allocates what it
autotunes with, and frees it at once (JAX's documentation, "GPU memory allocation").
"""


_OF_ABSENT_DEVICES = {
    "cuda": {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "CUDA_VISIBLE_DEVICES": ""},
    "tpu": {
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_LOG_DIR": "disabled",
        "TPU_STDERR_LOG_LEVEL": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
    },
}
"""Variables of compilers for devices that are not present, by platform."""


def variables(platform: str) -> Mapping[str, str]:
    """Return the environment variables of the compilers of a platform.

    `here-cuda` is the platform of this machine's GPU.
    XLA logs its warnings: some are about programs (`jaxsight.compiler.hlo`).
    """
    if platform.startswith("here-"):
        return {"JAX_PLATFORMS": platform.removeprefix("here-") + ",cpu", **_FRUGAL}
    shared = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "1"}
    return {**shared, **_OF_ABSENT_DEVICES.get(platform, {})}


def compiler_python(environment: CompilerEnvironment) -> OwnPython:
    """Return how an environment's compiler is started."""
    # No variables of the user's environment may reach one of ours.
    dropped = {"PYTHONPATH"} if environment.folder else set[str]()
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    return with_packages(environment.python, "-X", "utf8", *booted("compiler"), environ=environ)


def home() -> Path | None:
    """Return the folder of all environments, or `None` if the user has none.

    The variable `JAXSIGHT_COMPILERS` overrides it.
    """
    chosen = os.environ.get("JAXSIGHT_COMPILERS")
    return Path(chosen).absolute() if chosen else private.cache_folder("compilers")


def located() -> dict[str, str]:
    """Return the variable by which a process of the user's Python finds all environments."""
    folder = home()
    return {} if folder is None else {"JAXSIGHT_COMPILERS": str(folder)}


def installed(platform: str) -> list[CompilerEnvironment]:
    """Return the complete and trustworthy environments of a platform, the newest JAX first."""
    folder = home()
    if folder is None:
        return []
    markers = reading.below(folder, f"{platform}-*/{MARKER}")
    environments = [
        environment
        for marker in markers
        if (environment := usable(marker.parent)) is not None and environment.platform == platform
    ]
    return sorted(environments, key=lambda environment: numbers(environment.jax), reverse=True)


def ready() -> list[str]:
    """Return the targets that can be compiled for on this machine, its own CPU first."""
    platforms = {platform for platform in MEGABYTES if installed(platform)}
    return [
        name
        for name in names()
        if name == CPU or (":" in name and name.partition(":")[0] in platforms)
    ]


def suiting(platform: str, jax: str) -> CompilerEnvironment | None:
    """Return the environment for programs lowered by a version of JAX, or `None`.

    This is the one with the same version, else the one with the next newer version.
    """
    environments = installed(platform)
    same = [environment for environment in environments if environment.jax == jax]
    newer = [each for each in environments if numbers(each.jax) >= numbers(jax)]
    return same[0] if same else newer[-1] if newer else None


def identity(environment: CompilerEnvironment, target: Target) -> tuple[str, ...]:
    """Return everything besides the program that determines the output of a target's compiler."""
    if target.host:
        device = target.host
    elif not target.is_own:
        device = repr(target.chip)
    else:
        device = _this_machine(target.platform)
    # This machine's flags do not reach the compiler of another one.
    flags = (
        ()
        if target.host
        else (os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", ""))
    )
    return target.name, environment.platform, environment.jax, environment.plugin, device, *flags


@cache
def _this_machine(platform: str) -> str:
    """Return the names of the processor, or of the GPU and its driver.

    Machines may share the folder of the cache: one whose GPU has no known name has its own entries.
    """
    facts = [machine.machine(), machine.processor()]
    path = Path("/proc/cpuinfo")
    if platform != CPU:
        device = own_device(platform, os.environ)
        facts.append((device.device_kind if device is not None else "") or machine.node())
        path = Path("/proc/driver/nvidia/version")
    with contextlib.suppress(OSError):
        lines = reading.text(path, strict=False).splitlines()
        facts += [
            line
            for line in dict.fromkeys(lines)
            if line.startswith(("model name", "flags", "Features", "NVRM"))
        ]
    return "\n".join(facts)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version such as `0.12.0.1` as a tuple of numbers, for comparisons."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def usable(folder: Path) -> CompilerEnvironment | None:
    """Return the environment in a folder, or `None` if incomplete or possibly another user's."""
    if not reading.exists(folder / MARKER) or not reading.is_file(folder / PYTHON_PATH):
        return None
    marker, programs = folder / MARKER, (folder / PYTHON_PATH).parent
    if not private.belongs_to_us(marker) or not private.belongs_to_us(programs):
        log.warning("ignoring the compilers in %s: other users can write there", folder)
        return None
    try:
        record = json.loads(reading.text(folder / MARKER, reading.SMALL))
        environment = CompilerEnvironment(
            **{**record, "python": str(folder / PYTHON_PATH), "folder": str(folder)}
        )
    except (reading.UnreadableError, ValueError, TypeError, RecursionError):
        return None  # written by another version of jaxsight, or corrupt
    if not all(isinstance(value, str) for value in asdict(environment).values()):
        return None
    return environment


_LAST_WORK = 1.0
"""Seconds in which a compiler whose requests have ended exits, a choice; then it is killed."""


class NoCompiler(Exception):
    """The process cannot compile, or has ended; the text says why."""


class DirectCompiler(ChildProcess):
    """A compiler process of an environment, which ends with the context."""

    def __init__(self, environment: CompilerEnvironment) -> None:
        self._frames = frames.FrameReader()
        own = compiler_python(environment)
        chosen = {**own.environment, **variables(environment.platform)}
        super().__init__(replace(own, environment=chosen))

    def end(self) -> None:
        """End the requests, so that it removes its files and exits; kill it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
            self._process.stdin = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_WORK)
        super().end()

    def compile(self, request: Compile) -> Compiled | NotCompiled:
        """Compile a program.

        Raises:
            NoCompiler: the process cannot, or ended.
        """
        try:
            frames.write(self.requests, request)
        except frames.WireError as error:
            raise NoCompiler(str(error)) from error
        while data := self.read():
            for message in self._frames.feed(data):
                if isinstance(message, Compiled | NotCompiled):
                    return message
                if isinstance(message, Hello) and message.problem:
                    raise NoCompiler(message.problem)
        raise NoCompiler(f"the compiler exited with status {self.status()}")
