"""What each target needs on this machine: nothing, a compiler to be installed, or another machine.

Only files are examined.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

from jaxsight.targets.chips import Gpu
from jaxsight.targets.own.devices import own_device
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.default_target import unusable

State = Literal["ready", "needs", "cannot"]


@dataclass(frozen=True, slots=True)
class TargetState:
    """Whether programs can be compiled for a target: `needs` an installation, or `cannot` be.

    `detail` says by what, or why not.
    """

    state: State
    detail: str
    compiler: str = ""
    """The platform whose compiler must be installed: `cuda` or `tpu`; else empty."""


def target_state(target: Target, jax: str, plugins: tuple[str, ...]) -> TargetState:
    """Return the state of a target for programs lowered by a version of JAX.

    Args:
        target: the target.
        jax: the version of JAX.
        plugins: the platforms that this JAX has plugins for.
    """
    if target.host:
        return TargetState("ready", f"compiled by the JAX of {target.host}, over ssh")
    if not target.is_own:
        return _distant_chip(target, jax)
    if target.platform == CPU:
        return TargetState("ready", "compiled by your own jaxlib")
    device = own_device(target.platform, os.environ)
    if problem := unusable(device, target.platform, plugins):
        return TargetState("cannot", problem)
    return TargetState("ready", "compiled by your own JAX, on the device")


def figures(target: Target) -> str:
    """Return the memory and rates of a target's chip, such as `80 GiB · 3.35 TB/s`."""
    chip = target.chip
    if chip is None:
        return ""
    parts = [units.size(chip.memory), f"{chip.bandwidth / 1e12:.3g} TB/s"]
    if isinstance(chip, Gpu):
        parts.append(f"compute capability {target.capability}")
    return " · ".join(parts)


def _distant_chip(target: Target, jax: str) -> TargetState:
    """Return the state of a target that is compiled for ahead of time."""
    if sys.platform != "linux":
        return TargetState(
            "cannot",
            f"compiler requires Linux; use ssh://HOST/{target.name}, a container or WSL2",
        )
    environment = environments.suiting(target.platform, jax)
    if environment is not None:
        return TargetState("ready", f"compiled ahead of time by JAX {environment.jax}")
    size = environments.MEGABYTES[target.platform]
    # What `jaxsight targets` writes after "needs"; an editor has words of its own.
    command = environments.installing(target.platform).removeprefix("run ")
    return TargetState("needs", f"{command}, about {size} MB", target.platform)
