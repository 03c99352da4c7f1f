"""What the features share: the engine's session, the open documents, and the client.

Features get a `ClientContext`, and know neither each other nor the server that puts them together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.client import ClientFeatures
from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.convert import notice
from jaxsight.lsp.cursors import Cursors
from jaxsight.lsp.documents.printed import PrintedPrograms, ReadProgram
from jaxsight.lsp.documents.registry import ClientDocuments
from jaxsight.lsp.documents.text import Units
from jaxsight.rules.failure_text import divided
from jaxsight.rules.wording import MOST, cut
from jaxsight.text.inert import block
from jaxsight.text.terminal import unasked

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.lsp.server import LanguageServer

    # The protocol answers `initialize` before the engine is imported.
    from jaxsight.session import Session

log = logging.getLogger(__name__)

_IN_LOG = " (all of it is in the log)"

Params = TypeVar("Params")
Result = TypeVar("Result")


class WrongArguments(Exception):
    """A command does not take its arguments."""


def is_long(reason: str) -> bool:
    """Return whether a pop-up would show a reason only in part."""
    return bool(divided(reason.strip())[1])


class ClientContext:
    """A connection to a client, as the features see it."""

    session: Session
    """Set after `initialize` has been answered, before the next message is read."""

    def __init__(
        self, connection: LanguageServer, converter: Converter, configuration: Configuration
    ) -> None:
        self.connection = connection
        """pygls' server, with the standard's requests to the client."""
        self.converter = converter
        self.configuration = configuration
        self.client = ClientFeatures()
        self.documents = ClientDocuments(Units())
        self.printed = PrintedPrograms()
        self.cursors = Cursors()
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(
        self,
        method: str,
        handler: Callable[[Params], Awaitable[Result]],
        options: object = None,
    ) -> None:
        """Serve a request or a notification.

        An internal error is logged and answered with null: clients show errors of requests, and
        some of these are sent with each movement of the mouse.
        """

        async def answer(params: Params) -> Result | None:
            try:
                return await handler(params)
            except JsonRpcException:
                raise  # meant as an answer
            except Exception:
                log.exception("%s failed", method)
                message = f"{method} failed; see the log for details"
                self.log_message(types.MessageType.Error, message)
                return None

        self.connection.feature(method, options)(answer)

    def serve_programs(
        self,
        method: str,
        handler: Callable[[ReadProgram, Any], Awaitable[Result]],
        options: object = None,
    ) -> None:
        """Serve a request about printed programs; the answer is null for other documents."""

        async def answer(params: Any) -> Result | None:
            opened = await self.program(params.text_document.uri)
            return await handler(opened, params) if opened is not None else None

        self.serve(method, answer, options)

    async def program(self, uri: str) -> ReadProgram | None:
        """Return an open printed program, or `None` if the document is none."""
        return await self.printed.read(uri, self.documents.units)

    def path(self, file: str) -> str:
        """Return the engine's path of a file, given as a path or a URI."""
        is_uri = "://" in file or file.startswith("untitled:")
        return (self.documents.served(file) if is_uri else None) or file

    def notify(self, method: str, params: object) -> None:
        """Send a notification of jaxsight's own."""
        self.connection.protocol.notify(method, params)

    def log_message(self, kind: types.MessageType, message: str) -> None:
        """Write a line to the client's log of this server."""
        params = types.LogMessageParams(type=kind, message=block(message))
        self.connection.window_log_message(params)

    def show_message(self, kind: types.MessageType, message: str) -> None:
        """Show a message as a pop-up."""
        params = types.ShowMessageParams(type=kind, message=notice(message))
        self.connection.window_show_message(params)

    async def show_document(self, params: types.ShowDocumentParams) -> bool:
        """Ask the client to show a document, if it can, and return whether it has."""
        if not self.client.shows_documents:
            return False
        try:
            shown = await self.connection.window_show_document_async(params)
        except JsonRpcException as error:
            log.warning("client failed to show %s: %s", params.uri, error)
            return False
        return shown.success

    def refuse(self, reason: str) -> None:
        """Show why a command did nothing, as a pop-up of one clause; the log has all of a long one.

        Editors cut pop-ups of several lines.
        """
        message, _ = divided(reason.strip())
        if is_long(reason):
            message = f"{cut(message, MOST - len(_IN_LOG))}{_IN_LOG}"
            self.log_message(types.MessageType.Warning, reason)
        self.show_message(types.MessageType.Warning, message)

    async def ask(
        self,
        question: str,
        answers: Sequence[str],
        kind: types.MessageType = types.MessageType.Info,
    ) -> str | None:
        """Ask the user, and return the answer that they select, if any.

        Raises:
            JsonRpcException: the client shows no questions.
        """
        params = types.ShowMessageRequestParams(
            type=kind,
            message=notice(question),
            actions=[types.MessageActionItem(title=title) for title in answers],
        )
        selected = await self.connection.window_show_message_request_async(params)
        return selected.title if selected is not None and selected.title in answers else None

    async def agrees(self, question: str, answers: Sequence[str], command: str) -> bool:
        """Ask the user, and return whether the last answer was selected.

        Args:
            question: what is to be done.
            answers: one that does nothing should be the first: some clients always return that.
            command: what does it in a terminal.

        Raises:
            LookupError: the client shows no questions; the message says what to do.
        """
        try:
            return await self.ask(question, answers) == answers[-1]
        except JsonRpcException as error:
            raise LookupError(unasked(command)) from error

    def when_cancelled(self, action: Callable[[], object]) -> None:
        """Call a function if the client cancels the request that is being handled.

        pygls cancels the handlers of requests, but not those of commands.
        """
        protocol = self.connection.protocol
        future = protocol._request_futures.get(protocol.msg_id)  # type: ignore[arg-type]
        if future is not None:
            future.add_done_callback(lambda done: action() if done.cancelled() else None)

    def start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Run a coroutine that nobody awaits; log its errors."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    async def answered(self, work: Coroutine[object, object, Result], name: str) -> Result | None:
        """Return the result of long work; `None` at once to clients that do not wait for long.

        Raises:
            LookupError: that of the work, to clients that wait.
        """
        if self.client.knows_us:
            return await work
        self.start(self.refusing(work), name)
        return None

    async def refusing(self, work: Coroutine[object, object, object]) -> None:
        """Await work, and show why it was refused, if it was."""
        try:
            await work
        except LookupError as error:
            self.refuse(str(error))

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    def cancel_tasks(self) -> None:
        """Cancel all tasks that were started, as the connection has ended."""
        for task in list(self._tasks):
            task.cancel()

    def apply_configuration(self) -> None:
        """Apply changed folders, settings, trust or Python environments."""
        self.documents.home = (self.configuration.roots or [""])[0]
        self.configuration.apply(self.session)
