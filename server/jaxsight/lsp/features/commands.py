"""`workspace/executeCommand`: commands run by lenses, and by users by name.

A file is given as its path or its URI.
A command that fails shows a message; it does not answer with an error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from jaxsight import __version__
from jaxsight.lsp.context import ClientContext, is_long
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.virtual_uris import KINDS, VIEW, VirtualDocument
from jaxsight.lsp.features.code_actions import workspace_edit
from jaxsight.lsp.features.repros import CHECKS, Answer, ReproCommands
from jaxsight.lsp.features.targets import CHOOSE_TARGET, INSTALL_TARGET, Targets
from jaxsight.lsp.features.until_seen import RUN_UNTIL_SEEN, UntilSeenCommand
from jaxsight.lsp.features.until_seen import Answer as Run
from jaxsight.lsp.features.virtual_documents import VirtualDocuments, explained
from jaxsight.lsp.notifications.statuses import Statuses
from jaxsight.lsp.transport.protocol import JaxsightProtocol
from jaxsight.source.text import Range
from jaxsight.trust.decisions import COMMAND
from jaxsight.wire.messages.requests import STYLES, TRANSFORMS

RESTART = "jaxsight.restart"
CHOOSE_SET = "jaxsight.chooseSet"
SHOW = "jaxsight.show"
SHOW_PROPOSED = "jaxsight.showProposed"
KEEP_PROPOSED = "jaxsight.keepProposed"
EXTRACT_REPRO = "jaxsight.extractRepro"
REDUCE_REPRO = "jaxsight.reduceRepro"
INFO = "jaxsight.info"
TRUST = COMMAND

_FIRST_SET = "(unnamed)"
"""How the question calls the example set that has no name."""

Command = Callable[[tuple[object, ...]], Awaitable[Any]]


class Commands:
    """Runs the commands of one connection."""

    def __init__(
        self, context: ClientContext, virtual_documents: VirtualDocuments, statuses: Statuses
    ) -> None:
        self._context = context
        self._virtual_documents = virtual_documents
        self._statuses = statuses
        self._repros = ReproCommands(context, virtual_documents)
        self._until_seen = UntilSeenCommand(context)
        self._targets = Targets(context)

    def register(self) -> None:
        """Serve the commands."""
        self._targets.register()
        commands: dict[str, Command] = {
            RESTART: self._restart,
            CHOOSE_SET: self._choose_set,
            CHOOSE_TARGET: self._targets.choose,
            INSTALL_TARGET: self._targets.install,
            SHOW: self._show,
            SHOW_PROPOSED: self._show_proposed,
            KEEP_PROPOSED: self._keep_proposed,
            EXTRACT_REPRO: self._extract_repro,
            REDUCE_REPRO: self._reduce_repro,
            RUN_UNTIL_SEEN: self._run_until_seen,
            TRUST: self._trust,
            INFO: self._info,
        }
        for name, command in commands.items():
            self._context.connection.command(name)(self._handler(command))

    def _handler(self, command: Command) -> Callable[..., Awaitable[Any]]:
        async def run(*arguments: Any) -> Any:
            task = asyncio.current_task()
            assert task is not None
            cast(JaxsightProtocol, self._context.connection.protocol).when_cancelled(task.cancel)
            try:
                return await command(arguments)
            except LookupError as error:
                self._context.refuse(str(error))
                return None

        return run

    async def _restart(self, arguments: tuple[object, ...]) -> None:
        """Replace the tracers of one root or of all (`jaxsight.restart [ROOT]`)."""
        match arguments:
            case ():
                await self._context.session.restart()
            case (str(root),):
                await self._context.session.restart(self._path(root))
            case _:
                raise JsonRpcInvalidParams(f"{RESTART} takes at most a root folder")

    async def _choose_set(self, arguments: tuple[object, ...]) -> None:
        """Trace with other example inputs (`jaxsight.chooseSet FILE FUNCTION [SET]`).

        Without a set, the user is asked; the only set of a function is shown in the text.
        """
        session = self._context.session
        match arguments:
            case (str(file), str(function)):
                path = self._path(file)
                sets = session.sets(path, function)
                if len(sets) < 2:
                    await self._show_range(path, session.inputs_range(path, function))
                    return
                name = await self._ask_for_set(function, sets)
            case (str(file), str(function), str(name)):
                path = self._path(file)
            case _:
                raise JsonRpcInvalidParams(
                    f"{CHOOSE_SET} takes a file, a function and optionally a set"
                )
        if name is not None:
            session.choose_set(path, function, name)

    async def _show_range(self, path: str, where: Range) -> None:
        """Ask the client to go to a place in an open document, if it can."""
        view = self._context.documents.window(path, where)
        if view is None or not self._context.client.shows_documents:
            return
        params = types.ShowDocumentParams(
            uri=view.uri, take_focus=True, selection=view.to_range(where)
        )
        await self._context.connection.window_show_document_async(params)

    async def _ask_for_set(self, function: str, sets: list[str]) -> str | None:
        """Return the example set that the user selects, or `None`."""
        question = f"Select the example inputs to trace {function} with"
        answers = {notice(name) or _FIRST_SET: name for name in sets}
        return answers.get(await self._context.ask(question, list(answers)) or "")

    async def _show(self, arguments: tuple[object, ...]) -> dict[str, Any]:
        """Show a virtual document.

        (`jaxsight.show FILE FUNCTION [KIND [TRANSFORM or INTERPRETER]]`).
        Returns its URI and text.
        Clients that can open documents are asked to open it, or a file with its text if they can
        open only files. If there is no such document for a long reason, it has the reason.
        """
        document = self._virtual_document(arguments)
        try:
            content = await self._virtual_documents.compute(document)
        except LookupError as error:
            if not is_long(str(error)) or not self._context.client.shows_documents:
                raise
            content = explained(document, error)
        await self._virtual_documents.open(document, content.text)
        return {"uri": document.uri(), "text": content.text}

    def _virtual_document(self, arguments: tuple[object, ...]) -> VirtualDocument:
        """Return the document that the arguments of `jaxsight.show` name."""
        transform = ""
        match arguments:
            case (str(file), str(function)):
                kind = KINDS[0]
            case (str(file), str(function), str(kind)) if kind in KINDS and kind != VIEW:
                pass
            case (str(file), str(function), str(kind), str(transform)) if kind == VIEW or (
                kind in STYLES and transform in ("", *TRANSFORMS)
            ):
                pass
            case _:
                raise JsonRpcInvalidParams(
                    f"{SHOW} takes a file, a function, one of {', '.join(KINDS)}, for source one "
                    f"of {', '.join(TRANSFORMS)}, and for a view an interpreter"
                )
        return VirtualDocument(self._path(file), function, kind, transform)

    async def _show_proposed(self, arguments: tuple[object, ...]) -> None:
        """Trace a function with proposed inputs (`jaxsight.showProposed FILE FUNCTION`).

        With a third argument, `hide`, it is not traced with them any longer.
        """
        match arguments:
            case (str(file), str(function)):
                await self._context.session.show_proposed(self._path(file), function)
            case (str(file), str(function), "hide"):
                await self._context.session.show_proposed(self._path(file), function, hide=True)
            case _:
                raise JsonRpcInvalidParams(f"{SHOW_PROPOSED} takes a file and a function")

    async def _keep_proposed(self, arguments: tuple[object, ...]) -> None:
        """Write proposed inputs into the docstring (`jaxsight.keepProposed FILE FUNCTION`)."""
        match arguments:
            case (str(file), str(function)):
                path = self._path(file)
            case _:
                raise JsonRpcInvalidParams(f"{KEEP_PROPOSED} takes a file and a function")
        context = self._context
        action = await context.session.keep_proposed(path, function)
        view = context.documents.window(path, action.edits[0].range)
        if action.file:
            view = next(iter(context.documents.views(path)), None)
        if view is not None and context.client.applies_edits:
            edit = workspace_edit(context, view, action)
            params = types.ApplyWorkspaceEditParams(edit=edit, label=action.title)
            await context.connection.workspace_apply_edit_async(params)

    async def _extract_repro(self, arguments: tuple[object, ...]) -> Answer:
        """Extract a repro (`jaxsight.extractRepro FILE FUNCTION [CHECK]`), and open it.

        Returns its URI, text, file and summary; null if the user cancels it, and at once for
        clients that do not know jaxsight.
        """
        match arguments:
            case (str(file), str(function)):
                check = CHECKS[0]
            case (str(file), str(function), str(check)) if check in CHECKS:
                pass
            case _:
                raise JsonRpcInvalidParams(
                    f"{EXTRACT_REPRO} takes a file, a function, and optionally one of "
                    f"{', '.join(filter(None, CHECKS))}"
                )
        return await self._repros.extract(self._path(file), function, check)

    async def _reduce_repro(self, arguments: tuple[object, ...]) -> Answer:
        """Reduce the extracted repro (`jaxsight.reduceRepro FILE FUNCTION`), and open the result.

        Returns what `jaxsight.extractRepro` does. If the user cancels it, the result is the
        smallest program so far.
        """
        match arguments:
            case (str(file), str(function)):
                return await self._repros.reduce(self._path(file), function)
            case _:
                raise JsonRpcInvalidParams(f"{REDUCE_REPRO} takes a file and a function")

    async def _run_until_seen(self, arguments: tuple[object, ...]) -> Run:
        """Run a program until a file's functions were called (`jaxsight.runUntilSeen FILE`).

        The user is asked first, because a link in a text may run the command. Returns the functions
        that were seen and that are missing; null if the user does not agree, and at once for
        clients that do not know jaxsight.
        """
        match arguments:
            case (str(file),):
                return await self._until_seen.run(self._path(file))
            case _:
                raise JsonRpcInvalidParams(f"{RUN_UNTIL_SEEN} takes a file")

    async def _trust(self, arguments: tuple[object, ...]) -> None:
        """Ask again for pending decisions of one folder or of all (`jaxsight.trust [FOLDER]`).

        The command itself decides nothing, because a link in a text may run it.
        It does not wait for the answer.
        """
        match arguments:
            case ():
                pending = self._context.session.ask_again()
            case (str(folder),):
                pending = self._context.session.ask_again(self._path(folder))
            case _:
                raise JsonRpcInvalidParams(f"{TRUST} takes at most a folder")
        if not pending:
            self._context.show_message(types.MessageType.Info, "No pending decisions.")

    async def _info(self, arguments: tuple[object, ...]) -> dict[str, object]:
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
            "statuses": self._statuses.last,
        }

    def _path(self, file: str) -> str:
        """Return the engine's path of a file, given as a path or a URI."""
        is_uri = "://" in file or file.startswith("untitled:")
        return (self._context.documents.served(file) if is_uri else None) or file
