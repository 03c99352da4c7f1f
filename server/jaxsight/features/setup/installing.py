"""Install the compiler of a platform for a project's JAX, with progress, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from jaxsight.features.setup.targets import TITLES
from jaxsight.queries.engine import Engine
from jaxsight.trust.decisions import shown_path
from jaxsight.workers.compilation import default_target, environments, installation
from jaxsight.workers.compilation.installation import InstallError


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
    def question(self) -> str:
        """What the user is asked."""
        return (
            f"Install {self.title}? pip downloads about "
            f"{environments.MEGABYTES[self.platform]} MB from {self.origin}, for JAX {self.jax}, "
            f"into {shown_path(self.folder)}. Your own environment does not change."
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
        return f"Installed {plan.title}: JAX {environment.jax}, {shown_path(environment.folder)}"

    async def aclose(self) -> None:
        """End all installations."""
        for cancelled in self._running.values():
            cancelled.set()
        await asyncio.gather(*self._running, return_exceptions=True)
