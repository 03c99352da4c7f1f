"""Which targets are shown, and the environment that compiles for one."""

from __future__ import annotations

import time

from jaxsight.targets.target import CPU, PREFERRED, Target, parse
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.environments import Environment


def chosen_targets(target: str, more: tuple[str, ...], jax: str) -> tuple[Target, ...]:
    """Return the targets of the settings, the main one first; without any, the default target.

    Args:
        target: the setting `target`; may be empty.
        more: the setting `targets`.
        jax: the user's version of JAX, for which the default target's compiler must be installed.
    """
    chosen = [parse(name) for name in (target or default_target(jax), *more)]
    return tuple({named.name: named for named in chosen}.values())


_default: dict[str, tuple[float, str]] = {}


_LOOK_AGAIN = 5.0


def default_target(jax: str) -> str:
    """Return `cuda:h100` if its compiler is installed, otherwise this machine's CPU.

    The installed compilers are listed again after a few seconds.
    """
    now = time.monotonic()
    cached = _default.get(jax)
    if cached is None or now - cached[0] > _LOOK_AGAIN:
        name = PREFERRED if environments.suiting("cuda", jax) is not None else CPU
        cached = _default[jax] = (now, name)
    return cached[1]


def look_again() -> None:
    """List the installed compilers anew: one was installed."""
    _default.clear()


def environment_of(target: Target, python: str, jax: str) -> Environment | Trouble:
    """Return the environment that compiles for a target."""
    if target.host:
        return Environment("ssh", "", jax)
    if target.chip is None:
        platform = "here" if target.platform == CPU else f"here-{target.platform}"
        return Environment(platform, python, jax)
    environment = environments.suiting(target.platform, jax)
    if environment is None:
        size = environments.MEGABYTES[target.platform]
        return Trouble(
            "missing",
            f"compiler for {target.name} is not installed; "
            f"run `jaxsight targets install {target.platform}` (about {size} MB)",
            last=False,
        )
    return environment
