"""The targets that an editor offers, in groups, each with what it is and what it needs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from jaxsight.queries.engine import Engine
from jaxsight.targets.target import PREFERRED, Target, counted, names, parse
from jaxsight.trust.decisions import path_text
from jaxsight.workers.compilation import default_target, environments, installation
from jaxsight.workers.compilation.default_target import (
    State,
    TargetState,
    figures,
    own_target,
    target_state,
)
from jaxsight.workers.compilation.installation import InstallError

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
        offers = []
        for target, group in _grouped(known):
            state = target_state(target, project.jax, plugins)
            offer = _offer(own_target(target, os.environ), group, active, state, disk)
            if target.host and not project.may_send(target.host):
                offer = replace(offer, detail=UNAPPROVED, approved=False)
            offers.append(offer)
        offers.sort(key=lambda offer: not offer.approved)
        return Offers(active.name, settings.target, project.jax, tuple(offers), compilers)

    return await asyncio.to_thread(look)


def _grouped(known: list[str]) -> Iterator[tuple[Target, Group]]:
    """Yield targets with their groups, without duplicates.

    Args:
        known: names that are chosen or configured.
    """
    several = [counted(parse(name), _DEVICES) for name in _SEVERAL]
    targets = map(parse, dict.fromkeys((*names(), *several, _TPU_SLICE, *known)))
    order = get_args(Group)
    grouped = [(target, _group(target)) for target in targets]
    yield from sorted(grouped, key=lambda each: order.index(each[1]))


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


# Install the compiler of a platform for a project's JAX, with progress, until it is cancelled.


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What would be installed: the compiler of a platform for a version of JAX."""

    platform: str
    python: str
    """The interpreter that creates the environment, and whose pip downloads."""
    jax: str
    origin: str
    """The host that pip downloads from."""
    folder: str

    @property
    def title(self) -> str:
        """The compiler's name for people."""
        return f"the compiler for {TITLES[self.platform]}"

    @property
    def prompt(self) -> str:
        """What the user is asked."""
        return (
            f"Install {self.title}? pip downloads about "
            f"{environments.MEGABYTES[self.platform]} MB from {self.origin}, for JAX {self.jax}, "
            f"into {path_text(self.folder)}. Your own environment does not change."
        )


class _Cancelled(Exception):
    """The user cancelled an installation."""


class Installer:
    """The installations of a session."""

    def __init__(self, engine: Engine, retry: Callable[[], None]) -> None:
        """Install for a session's projects, and call `retry` whenever there is a new compiler."""
        self._engine = engine
        self._retry = retry
        self._running: dict[asyncio.Future[environments.CompilerEnvironment], threading.Event] = {}

    async def plan(self, path: str, platform: str) -> InstallPlan:
        """Return what would be installed for a file's project.

        Raises:
            LookupError: it cannot be installed; the message says why.
        """
        project, folder = self._engine.projects.of(path), environments.home()
        if platform not in environments.MEGABYTES:
            known = " and ".join(environments.MEGABYTES)
            raise LookupError(f"compilers can be installed for {known}, not for {platform!r}")
        if project.held_back:
            raise LookupError(f"cannot install a compiler: {project.held_back}")
        if project.interpreter is None:
            raise LookupError(project.problem)
        if folder is None:
            raise LookupError("no home folder to install into: set JAXSIGHT_COMPILERS to a folder")
        python = project.interpreter.path
        try:
            jax = project.jax or (await asyncio.to_thread(installation.installed_jax, python))[0]
        except InstallError as error:
            raise LookupError(str(error)) from error
        origin = await asyncio.to_thread(installation.origin, python)
        return InstallPlan(platform, python, jax, origin, str(folder))

    async def install(self, plan: InstallPlan, report: Callable[[str], None]) -> str:
        """Install a compiler, and return what was installed, in a sentence.

        Cancelling the caller ends pip, and leaves nothing behind.

        Args:
            plan: what the user agreed to.
            report: called with each step.

        Raises:
            LookupError: it failed; the message has the reason.
        """
        loop, cancelled = asyncio.get_running_loop(), threading.Event()

        def progress(step: str, megabytes: int) -> None:
            if cancelled.is_set():
                raise _Cancelled("the installation was stopped")
            text = f"{step}: {megabytes} MB on disk" if megabytes else step
            loop.call_soon_threadsafe(report, text)

        work = asyncio.ensure_future(
            asyncio.to_thread(installation.install, plan.platform, plan.jax, plan.python, progress)
        )
        self._running[work] = cancelled
        try:
            environment = await asyncio.shield(work)
        except asyncio.CancelledError:
            cancelled.set()
            with contextlib.suppress(_Cancelled, InstallError):
                await work
            raise
        except (InstallError, _Cancelled) as error:
            raise LookupError(str(error)) from error
        finally:
            self._running.pop(work, None)
        default_target.look_again()
        self._retry()
        return f"Installed {plan.title}: JAX {environment.jax}, {path_text(environment.folder)}"

    async def aclose(self) -> None:
        """End all installations."""
        for cancelled in self._running.values():
            cancelled.set()
        await asyncio.gather(*self._running, return_exceptions=True)
