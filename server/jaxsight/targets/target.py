"""Names of targets, and their meaning.

Plain data; nothing here compiles, installs or searches the machine.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, field, replace
from functools import cache

from jaxsight.targets.chips import GPUS, TPUS, Gpu, Tpu, chip_of_kind
from jaxsight.wire.messages.requests import FakeDevice
from jaxsight.wire.program import SMEM, VMEM, PallasKernel

CPU = "cpu"
PREFERRED = "cuda:h100"
"""The default target on a machine without an accelerator, if its compiler is installed."""

MOST_DEVICES = 512
"""Maximum number of devices: the tracer simulates them (`tracer/execution/device_demand.py`)."""
_COUNTED = re.compile(r"(.+)x(\d+)")
"""`h100x8`."""
_SLICE = re.compile(r"\d+(x\d+){1,2}")
"""`4x4`, `2x2x4`."""


class UnknownTarget(LookupError):
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
    chip: Gpu | Tpu | None = field(default=None, compare=False)
    """The chip to compile for, whose figures apply; of the machine's own device, if it is known."""
    is_own: bool = False
    """Whether it is the device of the machine that compiles, not a chip that need not be there."""
    device_kind: str = field(default="", compare=False)
    """JAX's `device_kind` of the machine's own device; empty if not known, and for other targets.
    """
    why_default: str = field(default="", compare=False)
    """Why this is the default target, in a clause; empty if it was chosen."""
    host: str = ""
    """The machine that compiles, as a host name for ssh; empty for this one."""
    devices: int = 0
    """The number of devices; 0 for as many as a program needs."""
    topology: str = ""
    """The slice of TPUs (`4x4`); empty for the smallest that a program fits on."""

    @property
    def is_here(self) -> bool:
        """Whether it is a device of this machine."""
        return self.is_own and not self.host

    @property
    def short(self) -> str:
        """A short name for hints: `h100`, `h100x8`, `v5e:4x4`, `cpu`, `cuda`."""
        short = self.platform if self.is_own or self.chip is None else self.chip.name
        if self.topology:
            short = f"{short}:{self.topology}"
        elif self.devices:
            short = f"{short}{':' if self.is_own else 'x'}{self.devices}"
        return f"{short}@{self.host}" if self.host else short

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names that patterns match: also those without host and number of devices."""
        chip = () if self.chip is None else (self.chip.name, f"{self.platform}:{self.chip.name}")
        return (self.name, self.short, self.platform, *chip)

    @property
    def capability(self) -> str:
        """The compute capability of an NVIDIA GPU (`9.0`); empty if none or unknown."""
        if not isinstance(self.chip, Gpu):
            return ""
        return f"{self.chip.generation.major}.{self.chip.generation.minor}"

    @property
    def device(self) -> FakeDevice | None:
        """The device that code sees for this target; `None` for a CPU."""
        if self.platform == CPU:
            return None
        known = self.device_kind or (self.chip.kind if self.chip is not None else "")
        cores = self.chip.cores_of_device if isinstance(self.chip, Tpu) else 0
        return FakeDevice(self.platform, known, self.capability, cores)

    @property
    def title(self) -> str:
        """A name of the device for users."""
        if self.chip is not None and not self.is_own:
            return self.chip.title
        device = {"cpu": "CPU", "cuda": "GPU", "rocm": "AMD GPU", "tpu": "TPU"}[self.platform]
        device = self.device_kind or device
        return f"the {device} of {self.host}" if self.host else f"this machine's {device}"

    @property
    def facts(self) -> tuple[str, ...]:
        """Why this is the default target, and why there are no estimates, each in a clause."""
        why = f"default target: {self.why_default}" if self.why_default else ""
        is_unknown = self.chip is None and self.device_kind
        figures = f"no estimates: figures of {self.device_kind} are not known"
        return tuple(filter(None, (why, figures if is_unknown else "")))

    @property
    def instead(self) -> str:
        """The name of the target to choose where the machine's own device cannot be used.

        It compiles for the same chip, or else for one of its platform, without a device.
        """
        if self.chip is not None:
            return f"{self.platform}:{self.chip.name}"
        return "tpu:v5e" if self.platform == "tpu" else PREFERRED


@cache
def parse(text: str) -> Target:
    """Return the target of a name.

    Names are e.g. `cpu`, `cuda`, `cuda:h100`, `tpu:v5e`, `ssh://HOST`, `ssh://HOST/cuda:h100`; with
    a number of devices `cpu:8`, `cuda:h100x8`, `tpu:v5e:4x4`. A chip may be without its platform.

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
        return replace(inner, name=f"ssh://{host}/{inner.name}", host=host)
    platform, _, chip = wanted.lower().partition(":")
    platform = "cuda" if platform == "gpu" else platform
    if platform not in ("cpu", "cuda", "rocm", "tpu"):
        platform, chip = "", wanted.lower()
    elif not chip:
        return Target(platform, platform, is_own=True)
    elif chip.isdecimal():
        return Target(f"{platform}:{int(chip)}", platform, devices=_count(text, chip), is_own=True)
    gpu, count = GPUS.get(chip), ""
    if gpu is None and (counted := _COUNTED.fullmatch(chip)) is not None:
        gpu, count = GPUS.get(counted[1]), counted[2]
    if gpu is not None and platform in ("", gpu.platform):
        devices = _count(text, count) if count else 0
        name = f"{gpu.platform}:{gpu.name}{f'x{devices}' if devices else ''}"
        return Target(name, gpu.platform, gpu, devices=devices)
    if platform in ("", "tpu") and (found := _tpu(text, chip)) is not None:
        return found
    short = {name.rpartition(":")[2]: name for name in names()}
    near_names = difflib.get_close_matches(wanted.lower(), [*names(), *short])
    near = list(dict.fromkeys(short.get(name, name) for name in near_names))
    hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(names())}"
    raise UnknownTarget(f"unknown target {_shown(text)}", hint)


def counted(target: Target, devices: int) -> str:
    """Return the name of a target for at least so many of its devices, e.g. `cuda:h100x8`."""
    match None if target.is_own else target.chip:
        case None:
            return f"{target.platform}:{devices}"
        case Gpu() as gpu:
            return f"{target.platform}:{gpu.name}x{devices}"
        case Tpu() as tpu:
            return f"tpu:{tpu.name}:{tpu.slice_for(devices)}"


def recognized(target: Target, device_kind: str) -> Target:
    """Return a machine's own target with the figures of the chip that its device is.

    Args:
        target: any target; that of a chip is returned as it is.
        device_kind: JAX's name of the device; empty if not known.
    """
    if not target.is_own or target.platform == CPU or not device_kind:
        return target
    return replace(target, device_kind=device_kind, chip=chip_of_kind(device_kind))


def _tpu(text: str, chip: str) -> Target | None:
    """Return the target `tpu:CHIP` or `tpu:CHIP:SLICE`; `None` if there is no such chip."""
    version, _, topology = chip.partition(":")
    tpu = TPUS.get(_tpu_name(version))
    if tpu is None:
        return None
    if not topology:
        return Target(f"tpu:{tpu.name}", "tpu", tpu)
    sizes = [int(size) for size in topology.split("x")] if _SLICE.fullmatch(topology) else []
    if len(sizes) != tpu.dimensions or not all(sizes):
        example = "x".join(["4"] * tpu.dimensions)
        raise UnknownTarget(
            f"target {_shown(text)} has no valid topology",
            f"write its size in {tpu.dimensions} dimensions, such as tpu:{tpu.name}:{example}",
        )
    topology = "x".join(map(str, sizes))
    devices = _count(text, str(math.prod(sizes) * tpu.devices))
    return Target(f"tpu:{tpu.name}:{topology}", "tpu", tpu, devices=devices, topology=topology)


def _count(text: str, digits: str) -> int:
    """Return a number of devices.

    Raises:
        UnknownTarget: it is not between 1 and `MOST_DEVICES`.
    """
    count = int(digits) if len(digits) < 9 else MOST_DEVICES + 1  # `int` refuses long ones
    if not 1 <= count <= MOST_DEVICES:
        raise UnknownTarget(
            f"target {_shown(text)} has an unsupported number of devices",
            f"use 1 to {MOST_DEVICES} devices",
        )
    return count


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


@cache
def names() -> tuple[str, ...]:
    """Return all names without a host, those of this machine first."""
    return (
        CPU,
        "cuda",
        "rocm",
        "tpu",
        *(f"{gpu.platform}:{name}" for name, gpu in GPUS.items()),
        *(f"tpu:{name}" for name in TPUS),
    )


def _tpu_name(chip: str) -> str:
    return {"7x": "7x", "v7x": "7x", "tpu7x": "7x", "trillium": "v6e"}.get(chip, chip)


def memory_limits(kernel: PallasKernel, target: Target) -> dict[str, int]:
    """Return the bytes that a kernel may take of each memory, where that is known."""
    chip = target.chip
    if not isinstance(chip, Tpu):
        return {}
    return {VMEM: kernel.vmem_may_be(chip.kernel_vmem, chip.vmem), SMEM: chip.smem}
