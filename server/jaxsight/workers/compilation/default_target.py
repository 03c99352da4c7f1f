"""The target where none is chosen: this machine's accelerator, an absent GPU, or this CPU.

What each target needs on this machine is found out from files alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jaxsight.targets.chips import Gpu
from jaxsight.targets.own.devices import PLATFORMS, OwnDevice, own_device
from jaxsight.targets.target import CPU, PREFERRED, Target, parse, recognized
from jaxsight.text import units
from jaxsight.workers.compilation import environments

PLUGINS = {"cuda": "jax[cuda13]", "rocm": "jax-rocm7-plugin", "tpu": "jax[tpu]"}
"""What has JAX's plugin for a platform, for `pip install`."""

_LOOK_AGAIN = 5.0
"""Seconds after which devices and installed compilers are looked for again, a choice: each hint
asks, and a compiler that was just installed is to be found."""

_cache: dict[tuple[object, ...], tuple[float, Target]] = {}
"""Targets with the times at which they were looked up, by what they depend on."""


def default_target(jax: str, plugins: Collection[str], environ: Mapping[str, str]) -> Target:
    """Return the target where none is chosen; `why_default` says why it is that one.

    The user's own GPU or TPU is what their programs run on. An H100 that is not present comes next,
    if its compiler is installed.

    Args:
        jax: the user's version of JAX, for which the compiler must be installed.
        plugins: the platforms that their JAX has plugins for.
        environ: the environment variables of their programs.
    """
    return _recent((jax, *plugins), environ, lambda: _looked_up(jax, plugins, environ))


_VARIABLES = (
    "JAX_PLATFORMS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
)


def look_again() -> None:
    """Look for devices and compilers anew: one was installed."""
    _cache.clear()


def own_target(target: Target, environ: Mapping[str, str]) -> Target:
    """Return a target of this machine's own device with its chip, as far as files say which it is.

    Other targets are returned as they are.
    """
    if not target.is_here or target.platform == CPU:
        return target

    def look() -> Target:
        device = own_device(target.platform, environ)
        return recognized(
            target, device.device_kind if device is not None and not device.hidden else ""
        )

    return replace(_recent((target,), environ, look), why_default=target.why_default)


def _recent(
    key: tuple[object, ...], environ: Mapping[str, str], look: Callable[[], Target]
) -> Target:
    """Return what was looked up a moment ago: every hint asks."""
    whole = *key, *(environ.get(name) for name in _VARIABLES)
    now = time.monotonic()
    cached = _cache.get(whole)
    if cached is None or now - cached[0] > _LOOK_AGAIN:
        cached = _cache[whole] = (now, look())
    return cached[1]


def unusable(device: OwnDevice | None, platform: str, plugins: Collection[str]) -> str:
    """Return why JAX cannot use this machine's device of a platform, in a clause; empty if it can.

    Args:
        device: the device; `None` if there is none.
        platform: `cuda`, `rocm` or `tpu`.
        plugins: the platforms that JAX has plugins for.
    """
    if device is None:
        return f"no {_NAMES[platform]} found"
    if device.hidden:
        return f"{device.hidden} hides {device.title}"
    if platform not in plugins:
        return f"JAX has no plugin for {device.title}: `pip install {PLUGINS[platform]}`"
    return ""


_NAMES = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU", "tpu": "TPU"}


def _looked_up(jax: str, plugins: Collection[str], environ: Mapping[str, str]) -> Target:
    reasons = []
    for platform in PLATFORMS:
        device = own_device(platform, environ)
        problem = unusable(device, platform, plugins)
        if device is not None and not problem:
            target = recognized(parse(platform), device.device_kind)
            return replace(target, why_default="JAX uses it on this machine")
        if device is not None:
            reasons.append(problem)
    reason = reasons[0] if reasons else "no GPU or TPU found on this machine"
    if environments.suiting("cuda", jax) is not None:
        return replace(parse(PREFERRED), why_default=reason)
    return replace(parse(CPU), why_default=f"{reason}, and no compiler installed for absent ones")


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
