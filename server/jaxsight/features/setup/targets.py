"""The targets that an editor offers, in groups, each with what it is and what it needs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from jaxsight.queries.engine import Engine
from jaxsight.targets.target import PREFERRED, Target, counted, names, parse
from jaxsight.workers.compilation import environments, installation
from jaxsight.workers.compilation.default_target import (
    State,
    TargetState,
    figures,
    own_target,
    target_state,
)

Group = Literal["here", "gpu", "tpu", "several", "ssh"]
"""This machine's devices, GPUs and TPUs that are not here, several devices, other machines."""

_SEVERAL = ("cpu", PREFERRED, "tpu:v5e")
"""Targets that are offered with several devices."""
_DEVICES, _TPU_SLICE = 8, "tpu:v5e:4x4"

UNAPPROVED = "named by the project or its settings: needs your approval before it is used"

TITLES = {"cuda": "NVIDIA GPUs", "tpu": "TPUs"}
"""Names of the platforms that compilers are installed for."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A target that can be chosen."""

    target: str
    group: Group
    title: str
    """The device, for people."""
    figures: str
    """Memory and rates of the chip; empty for this machine's devices."""
    state: State
    detail: str
    compiler: str
    """The platform whose compiler must be installed first: `cuda` or `tpu`; else empty."""
    active: bool
    """Whether kernels are shown for it now."""
    approved: bool = True
    """Whether its host may be used; the user is asked before it is."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that can be installed, with sizes in megabytes."""

    platform: str
    title: str
    download: int
    installed: tuple[str, ...]
    """Its versions of JAX, the newest first."""
    disk: int


@dataclass(frozen=True, slots=True)
class Offers:
    """The targets of a file's project."""

    active: str
    configured: str
    """The target of the settings; empty for the default."""
    jax: str
    """The version of JAX that traces; empty until it is known."""
    targets: tuple[Offer, ...]
    compilers: tuple[Compiler, ...]


async def targets(engine: Engine, path: str) -> Offers:
    """Return the targets for a file, this machine's first, hosts that need approval last."""
    project = engine.projects.of(path)
    chosen = engine.choices.targets(path)
    active, settings = chosen[0], project.settings
    configured = [name for name in (settings.target, *settings.targets) if name]
    plugins = project.plugins
    known = [target.name for target in chosen] + [parse(name).name for name in configured]

    def look() -> Offers:
        compilers = tuple(
            Compiler(
                platform,
                TITLES[platform],
                megabytes,
                tuple(environment.jax for environment in installed),
                sum(installation.megabytes(Path(each.folder)) for each in installed),
            )
            for platform, megabytes in environments.MEGABYTES.items()
            for installed in [environments.installed(platform)]
        )
        disk = {compiler.platform: compiler.disk for compiler in compilers}
        offers = [
            _offer(
                own_target(parse(name), os.environ),
                group,
                active,
                target_state(parse(name), project.jax, plugins),
                disk,
            )
            for name, group in _grouped(known)
        ]
        marked = sorted(map(mark, offers), key=lambda offer: not offer.approved)
        return Offers(active.name, settings.target, project.jax, tuple(marked), compilers)

    def mark(offer: Offer) -> Offer:
        host = parse(offer.target).host
        if not host or project.may_send(host):
            return offer
        return replace(offer, detail=UNAPPROVED, approved=False)

    return await asyncio.to_thread(look)


def _grouped(known: list[str]) -> Iterator[tuple[str, Group]]:
    """Yield the names of targets with their groups, without duplicates.

    Args:
        known: names that are chosen or configured.
    """
    single = [(name, _group(parse(name))) for name in names()]
    several = [counted(parse(name), _DEVICES) for name in _SEVERAL]
    others = dict.fromkeys((*several, _TPU_SLICE, *known))
    more = [(name, _group(parse(name))) for name in others if name not in names()]
    for group in ("here", "gpu", "tpu", "several", "ssh"):
        yield from (each for each in (*single, *more) if each[1] == group)


def _group(target: Target) -> Group:
    if target.host:
        return "ssh"
    if target.devices:
        return "several"
    if target.is_own:
        return "here"
    return "tpu" if target.platform == "tpu" else "gpu"


def _offer(
    target: Target, group: Group, active: Target, known: TargetState, disk: Mapping[str, int]
) -> Offer:
    detail = known.detail
    if known.compiler:
        size = environments.MEGABYTES[known.compiler]
        detail = f"compiler not installed: about {size} MB to download"
    elif known.state == "ready" and not target.is_own and not target.host:
        detail = f"{detail}, {disk[target.platform]:,} MB on disk"
    if target == active and active.why_default:
        detail = f"{detail}; default target: {active.why_default}"
    count = f"{target.devices} × " if target.devices else ""
    return Offer(
        target.name,
        group,
        f"{count}{target.title}",
        figures(target),
        known.state,
        detail,
        known.compiler,
        target.name == active.name,
    )
