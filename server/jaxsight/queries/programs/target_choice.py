"""Which targets are shown, and the environment that compiles for one."""

from __future__ import annotations

import os

from jaxsight.targets.target import CPU, Target, parse
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.default_target import default_target, own_target
from jaxsight.workers.compilation.environments import CompilerEnvironment


def chosen_targets(
    target: str, more: tuple[str, ...], jax: str, plugins: tuple[str, ...]
) -> tuple[Target, ...]:
    """Return the targets of the settings, the main one first; without any, the default target.

    Args:
        target: the setting `target`; may be empty.
        more: the setting `targets`.
        jax: the user's version of JAX, for which the default target's compiler must be installed.
        plugins: the platforms that the user's JAX has plugins for.
    """
    first = parse(target) if target else default_target(jax, plugins, os.environ)
    chosen = {first.name: own_target(first, os.environ)}
    for name in more:
        named = parse(name)
        chosen.setdefault(named.name, own_target(named, os.environ))
    return tuple(chosen.values())


def environment_of(target: Target, python: str, jax: str) -> CompilerEnvironment | Trouble:
    """Return the environment that compiles for a target."""
    if target.host:
        return CompilerEnvironment("ssh", "", jax)
    if target.is_own:
        platform = "here" if target.platform == CPU else f"here-{target.platform}"
        return CompilerEnvironment(platform, python, jax)
    environment = environments.suiting(target.platform, jax)
    if environment is None:
        size = environments.MEGABYTES[target.platform]
        return Trouble(
            "missing",
            f"compiler for {target.name} is not installed; "
            f"{environments.installing(target.platform)} (about {size} MB)",
            last=False,
        )
    return environment
