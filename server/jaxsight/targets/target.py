"""Names of targets, and their meaning.

Plain data; nothing here compiles, installs or searches the machine.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache

from jaxsight.targets.chips import GPUS, TPUS, Gpu, Tpu

CPU = "cpu"
PREFERRED = "cuda:h100"
"""The default target if its compiler is installed."""


class UnknownTarget(Exception):
    """No target has this name. `message` is one clause; `help` suggests a name."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(f"{message}; {help}")
        self.message = message
        self.help = help


@dataclass(frozen=True, slots=True)
class Target:
    """A target.

    `name` is canonical (`cuda:h100`), `platform` is JAX's (`cpu`, `cuda`, `rocm`, `tpu`).
    """

    name: str
    platform: str
    chip: Gpu | Tpu | None = None
    """The chip to compile for; `None` for the device of the machine."""
    host: str = ""
    """The machine that compiles, as a host name for ssh; empty for this one."""
    devices: int = 0
    """The number of devices; 0 for as many as a program needs."""

    @property
    def short(self) -> str:
        """A short name for hints: `h100`, `v5e`, `cpu`, `cuda`."""
        short = self.chip.name if self.chip is not None else self.platform
        return f"{short}@{self.host}" if self.host else short

    @property
    def capability(self) -> str:
        """The compute capability of an NVIDIA GPU (`9.0`); empty if none or unknown."""
        if not isinstance(self.chip, Gpu):
            return ""
        return f"{self.chip.generation.major}.{self.chip.generation.minor}"

    @property
    def title(self) -> str:
        """A name of the device for users."""
        if self.chip is not None:
            return self.chip.title
        return {"cpu": "this machine's CPU", "cuda": "this machine's GPU"}.get(
            self.platform, f"this machine's {self.platform}"
        )


@cache
def parse(text: str) -> Target:
    """Return the target of a name.

    Names are e.g. `cpu`, `cuda`, `cuda:h100`, `tpu:v5e`, `rocm:mi300x`, `ssh://HOST`,
    `ssh://HOST/cuda:h100`.

    Raises:
        UnknownTarget: no target has this name; `help` has the nearest ones.
    """
    wanted = text.strip()
    if wanted.startswith("ssh://"):
        host, _, target_name = wanted.removeprefix("ssh://").partition("/")
        if not host or host.startswith("-"):
            raise UnknownTarget(
                f"target {_shown(text)} has no host", "write ssh://HOST or ssh://HOST/TARGET"
            )
        inner = parse(target_name or "cuda")
        if inner.host:
            raise UnknownTarget(
                f"target {_shown(text)} has more than one host", "write ssh://HOST/TARGET"
            )
        return Target(f"ssh://{host}/{inner.name}", inner.platform, inner.chip, host)
    platform, _, chip = wanted.lower().partition(":")
    if platform == "gpu":
        platform = "cuda"
    if not chip and platform in ("cpu", "cuda", "rocm", "tpu"):
        return Target(platform, platform)
    gpu = GPUS.get(chip)
    if gpu is not None and gpu.platform == platform:
        return Target(f"{platform}:{chip}", platform, gpu)
    if platform == "tpu" and (tpu := TPUS.get(_tpu_name(chip))) is not None:
        return Target(f"tpu:{tpu.name}", "tpu", tpu)
    short = {name.rpartition(":")[2]: name for name in names()}
    near_names = difflib.get_close_matches(wanted.lower(), [*names(), *short], n=3, cutoff=0.6)
    near = list(dict.fromkeys(short.get(name, name) for name in near_names))
    hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(names())}"
    raise UnknownTarget(f"unknown target {_shown(text)}", hint)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


@cache
def names() -> tuple[str, ...]:
    """Return all names without a host, those of this machine first."""
    return (
        CPU,
        "cuda",
        "rocm",
        *(f"{gpu.platform}:{name}" for name, gpu in GPUS.items()),
        *(f"tpu:{name}" for name in TPUS),
    )


def _tpu_name(chip: str) -> str:
    return {"7x": "7x", "v7x": "7x", "tpu7x": "7x", "trillium": "v6e"}.get(chip, chip)
