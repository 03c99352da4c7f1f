"""Targets in an editor: the request `jaxsight/targets`, and commands that choose and install them.

A client that knows the request shows a list of its own. For others the server asks, with few
answers. A compiler is only installed once the user has agreed to a question of the server, because
a link in a text may run the command.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import inert, notice
from jaxsight.lsp.progress import progress_bar

if TYPE_CHECKING:
    from jaxsight.features.setup.targets import Offer

REQUEST = "jaxsight/targets"
CHOOSE_TARGET = "jaxsight.chooseTarget"
INSTALL_TARGET = "jaxsight.installTarget"

_MOST = 8
"""Answers of a question, a choice: clients show them as buttons, or cut them."""
_COMMON = ("cpu", "cuda:h100", "cuda:a100", "cuda:b200", "tpu:v5e", "tpu:v6e")
"""Targets that are offered first."""


class Targets:
    """The targets of one connection."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context

    def register(self) -> None:
        """Serve the request."""
        self._context.serve(REQUEST, self._answer)

    async def _answer(self, params: object) -> dict[str, object]:
        """Return the targets for a file, or for the first folder."""
        match params:
            case {"uri": str(uri)}:
                path = self._path(self._context.path(uri))
            case _:
                path = self._path()
        offers = await self._context.session.offers(path)
        return {
            "active": notice(offers.active),
            "configured": notice(offers.configured),
            "jax": offers.jax,
            "targets": [inert(asdict(offer)) for offer in offers.targets],
            "compilers": [inert(asdict(compiler)) for compiler in offers.compilers],
        }

    async def choose(self, target: str | None = None, path: str = "") -> None:
        """Show kernels for another target (`jaxsight.chooseTarget [TARGET [FILE]]`).

        Without a target, the user is asked. An empty target is that of the settings. If the
        target's compiler is not installed, the user is asked whether to install it; of a host, they
        are asked whether it may be used.
        """
        path, session = self._path(path), self._context.session
        if target is None:
            offers = await session.offers(path)
            answers = {_title(offer): offer.target for offer in _first(offers.targets)}
            question = (
                "Select the target to show kernels for; the setting `jaxsight.target` takes any "
                "other"
            )
            target = answers.get(await self._context.ask(question, list(answers)) or "")
        if target is None:
            return
        session.choose_target(target)
        offers = await session.offers(path)
        needed = next((offer.compiler for offer in offers.targets if offer.active), "")
        if needed:
            work = self._context.refusing(self._install(path, needed))
            self._context.start(work, f"installing for {target}")

    async def install(self, platform: str, path: str = "") -> None:
        """Install a compiler, once the user agrees (`jaxsight.installTarget PLATFORM [FILE]`).

        The platform is `cuda` or `tpu`; the compiler is for the JAX of the file's project.
        Clients that do not know jaxsight are answered at once.
        """
        work = self._install(self._path(path), platform)
        await self._context.answered(work, f"installing {platform}")

    async def _install(self, path: str, platform: str) -> None:
        """Ask, and install.

        Raises:
            LookupError: it cannot be installed; the message says why.
        """
        context = self._context
        plan = await context.session.installer.plan(path, platform)
        command = f"targets install {platform}"
        if not await context.agrees(plan.prompt, ["Cancel", "Install"], command):
            return
        async with progress_bar(context, f"Installing {plan.title}") as bar:
            installed = await bar.result_of(context.session.installer.install(plan, bar.report))
        if installed is not None:
            context.show_message(types.MessageType.Info, installed)

    def _path(self, path: str = "") -> str:
        """Return a path, by default that of a file in the first folder."""
        return path or str(Path(self._context.documents.home or ".", "pyproject.toml"))


def _first(offers: tuple[Offer, ...]) -> list[Offer]:
    """Return few targets: the active one, then common ones, then others; unapproved hosts last."""

    def rank(offer: Offer) -> tuple[bool, bool, bool, int]:
        common = _COMMON.index(offer.target) if offer.target in _COMMON else len(_COMMON)
        return not offer.approved, not offer.active, offer.state != "ready", common

    usable = [offer for offer in offers if offer.state != "cannot"]
    return sorted(usable, key=rank)[:_MOST]


def _title(offer: Offer) -> str:
    name = notice(offer.target)
    if not offer.approved:
        return f"{name} (needs your approval)"
    return f"{name} (install)" if offer.compiler else name
