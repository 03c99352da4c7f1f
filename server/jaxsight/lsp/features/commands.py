"""`workspace/executeCommand`: commands run by lenses, and by users by name.

All arguments are texts. A parameter `path` is the engine's path of a file or folder, which is given
as its path or its URI.
A command that fails shows a message; it does not answer with an error.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight import __version__, extensions
from jaxsight.features.code_actions import CHOOSE_SET, OPEN_PANEL, inputs_range
from jaxsight.lsp.context import ClientContext, WrongArguments, is_long
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.virtual_uris import KINDS, SCHEMES, VIEW, VirtualDocument, scheme_of
from jaxsight.lsp.features.code_actions import workspace_edit
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.panel_page import PanelPages
from jaxsight.lsp.features.runs import MEASURE, OPEN_PROFILE, RUN_UNTIL_SEEN, RunCommands
from jaxsight.lsp.features.targets import CHOOSE_TARGET, INSTALL_TARGET, Targets
from jaxsight.lsp.features.virtual_documents import VirtualDocuments, explained
from jaxsight.lsp.progress import Statuses
from jaxsight.source.text import Range
from jaxsight.trust.decisions import COMMAND
from jaxsight.wire.messages.requests import TRANSFORMS
from jaxsight_source.options import STYLES

RESTART = "jaxsight.restart"
SHOW = "jaxsight.show"
SHOW_PROPOSED = "jaxsight.showProposed"
KEEP_PROPOSED = "jaxsight.keepProposed"
INFO = "jaxsight.info"
TRUST = COMMAND

_FIRST_SET = "(unnamed)"
"""How the question calls the example set that has no name."""

_SHOWN = (
    f"a file, a function, one of {', '.join(KINDS)}, for source one of {', '.join(TRANSFORMS)}, "
    "and for a view an interpreter"
)
"""What `jaxsight.show` takes."""

Command = Callable[..., Awaitable[object]]


class Commands:
    """Runs the commands of one connection."""

    def __init__(
        self,
        context: ClientContext,
        virtual_documents: VirtualDocuments,
        statuses: Statuses,
        panels: Panels,
    ) -> None:
        self._context = context
        self._virtual_documents = virtual_documents
        self._statuses = statuses
        self._runs = RunCommands(context, virtual_documents)
        self._targets = Targets(context)
        self.pages = PanelPages(context, panels, virtual_documents)
        """The panel in browsers."""

    def register(self) -> None:
        """Serve the commands."""
        self._targets.register()
        # What each takes, for the error about other arguments.
        commands: dict[str, tuple[Command, str]] = {
            RESTART: (self._restart, "at most a root folder"),
            CHOOSE_SET: (self._choose_set, "a file, a function and optionally a set"),
            CHOOSE_TARGET: (self._targets.choose, "at most a target and a file"),
            INSTALL_TARGET: (self._targets.install, "a platform and a file"),
            SHOW: (self._show, _SHOWN),
            SHOW_PROPOSED: (self._show_proposed, "a file and a function"),
            KEEP_PROPOSED: (self._keep_proposed, "a file and a function"),
            OPEN_PROFILE: (self._runs.open_profile, "a profile's file or folder"),
            RUN_UNTIL_SEEN: (self._runs.run_until_called, "a file"),
            OPEN_PANEL: (self.pages.open, "nothing, or a file and a function"),
            MEASURE: (self._runs.measure, "a file, a function and optionally `cancel` or `wait`"),
            TRUST: (self._trust, "at most a folder"),
            INFO: (self._info, "nothing"),
        }
        for extension in extensions.of_editors():
            added = extensions.part(extension, "editor.commands")
            commands |= added.commands(self._context, self._virtual_documents)
        for name, (command, takes) in commands.items():
            self._context.connection.command(name)(self._handler(name, command, takes))

    def _handler(self, name: str, command: Command, takes: str) -> Command:
        """Return the function that checks the arguments of a command, and runs it."""
        signature = inspect.signature(command)

        # pygls would pass its server for a first parameter of the type `object`.
        async def run(*arguments: Any) -> object:
            task = asyncio.current_task()
            assert task is not None
            self._context.when_cancelled(task.cancel)
            try:
                if not all(isinstance(argument, str) for argument in arguments):
                    raise WrongArguments
                try:
                    given = signature.bind(*arguments)
                except TypeError as error:
                    raise WrongArguments from error
                if "path" in given.arguments:
                    given.arguments["path"] = self._context.path(given.arguments["path"])
                return await command(*given.args)
            except WrongArguments as error:
                raise JsonRpcInvalidParams(f"{name} takes {takes}") from error
            except LookupError as error:
                self._context.refuse(str(error))
                return None

        return run

    async def _restart(self, path: str | None = None) -> None:
        """Replace the tracers of one root or of all (`jaxsight.restart [ROOT]`)."""
        await self._context.session.restart(path)

    async def _choose_set(self, path: str, function: str, name: str | None = None) -> None:
        """Trace with other example inputs (`jaxsight.chooseSet FILE FUNCTION [SET]`).

        Without a set, the user is asked; the only set of a function is shown in the text.
        """
        session = self._context.session
        if name is None:
            sets = session.sets(path, function)
            if len(sets) < 2:
                await self._show_range(path, inputs_range(session.engine, path, function))
                return
            question = f"Select the example inputs to trace {function} with"
            answers = {notice(name) or _FIRST_SET: name for name in sets}
            name = answers.get(await self._context.ask(question, list(answers)) or "")
        if name is not None:
            session.choose_set(path, function, name)

    async def _show_range(self, path: str, where: Range) -> None:
        """Ask the client to go to a place in an open document, if it can."""
        view = self._context.documents.window(path, where)
        if view is not None:
            selection = view.to_range(where)
            params = types.ShowDocumentParams(view.uri, take_focus=True, selection=selection)
            await self._context.show_document(params)

    async def _show(
        self, path: str, function: str, document: str = "jaxpr", transform: str | None = None
    ) -> dict[str, str]:
        """Show a virtual document.

        (`jaxsight.show FILE FUNCTION [KIND [TRANSFORM or INTERPRETER]]`).
        Returns its URI and text.
        Clients that can open documents are asked to open it, or a file with its text if they can
        open only files. If there is no such document for a long reason, it has the reason.
        """
        kind = SCHEMES.get(scheme_of(document))
        if transform is None:
            is_known = kind != VIEW
        else:
            is_known = kind == VIEW or (kind in STYLES and transform in ("", *TRANSFORMS))
        if kind is None or not is_known:
            raise WrongArguments
        shown = VirtualDocument(path, function, kind, transform or "")
        try:
            content = await self._virtual_documents.compute(shown)
        except LookupError as error:
            if not is_long(str(error)) or not self._context.client.shows_documents:
                raise
            content = explained(shown, error)
        await self._virtual_documents.open(shown, content.text)
        return {"uri": shown.uri(), "text": content.text}

    async def _show_proposed(self, path: str, function: str, hide: str | None = None) -> None:
        """Trace a function with proposed inputs (`jaxsight.showProposed FILE FUNCTION`).

        With a third argument, `hide`, it is not traced with them any longer.
        """
        if hide not in (None, "hide"):
            raise WrongArguments
        await self._context.session.show_proposed(path, function, hide=hide is not None)

    async def _keep_proposed(self, path: str, function: str) -> None:
        """Write proposed inputs into the docstring (`jaxsight.keepProposed FILE FUNCTION`)."""
        context = self._context
        action = await context.session.keep_proposed(path, function)
        view = context.documents.window(path, action.edits[0].range)
        if action.file:
            view = next(iter(context.documents.windows(path)), None)
        if view is not None and context.client.applies_edits:
            edit = workspace_edit(context, view, action)
            params = types.ApplyWorkspaceEditParams(edit=edit, label=action.title)
            await context.connection.workspace_apply_edit_async(params)

    async def _trust(self, path: str | None = None) -> None:
        """Ask again for pending decisions of one folder or of all (`jaxsight.trust [FOLDER]`).

        The command itself decides nothing, because a link in a text may run it.
        It does not wait for the answer.
        """
        if not self._context.session.ask_again(path):
            self._context.show_message(types.MessageType.Info, "No pending decisions.")

    async def _info(self, *_: str) -> dict[str, object]:
        """Return versions, roots and statuses, for bug reports and status pages.

        (`jaxsight.info`)
        """
        context = self._context
        return {
            "version": __version__,
            "python": sys.version.split()[0],
            "client": context.client.name,
            "positionEncoding": context.documents.units.encoding,
            "diagnostics": "pull" if context.client.pulls_diagnostics else "push",
            "roots": context.configuration.roots,
            "trusted": context.configuration.trusted,
            "statuses": list(self._statuses.sent.values()),
        }
