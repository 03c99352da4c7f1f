"""Repros in the editor: extracted and reduced with progress, and opened as virtual documents."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.context import ClientContext, WrongArguments
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.virtual_uris import VirtualDocument
from jaxsight.lsp.features.commands import Command
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.progress import progress_bar
from jaxsight_repro.editor.repros import EXTRACT, REDUCE, ReproDocument, Repros

CHECKS = ("", "nan", "differs:jit,eager")
"""What a client may say that a function does wrong; by default, that it fails.

Others could run commands.
"""

_REDUCE = "Reduce"

Answer = dict[str, str] | None
"""The URI, the text, the file and the summary of a repro."""


def commands(
    context: ClientContext, virtual_documents: VirtualDocuments
) -> dict[str, tuple[Command, str]]:
    """Return the commands of a connection by name, each with what it takes in words."""
    repros = ReproCommands(context, virtual_documents)
    checks = ", ".join(filter(None, CHECKS))
    return {
        EXTRACT: (repros.extract, f"a file, a function, and optionally one of {checks}"),
        REDUCE: (repros.reduce, "a file and a function"),
    }


class ReproCommands:
    """Extracts and reduces repros for one connection."""

    def __init__(self, context: ClientContext, virtual_documents: VirtualDocuments) -> None:
        self._context = context
        self._virtual_documents = virtual_documents

    async def extract(self, path: str, function: str, check: str = "") -> Answer:
        """Extract a repro (`jaxsight.extractRepro FILE FUNCTION [CHECK]`), and open it.

        Returns its URI, text, file and summary; null if the user cancels it, and at once for
        clients that do not know jaxsight.

        Raises:
            LookupError: there is no repro; the message says why.
        """
        if check not in CHECKS:
            raise WrongArguments
        return await self._context.answered(self._extract(path, function, check), "a repro")

    async def reduce(self, path: str, function: str) -> Answer:
        """Reduce the repro of a function (`jaxsight.reduceRepro FILE FUNCTION`), and open it.

        Raises:
            LookupError: it was not extracted, or cannot be reduced; the message says which.
        """
        return await self._context.answered(self._reduce(path, function), "a repro")

    @property
    def _repros(self) -> Repros:
        """Those of the session, which exists when commands are run."""
        return cast(Repros, self._context.session.extensions["repro"])

    async def _extract(self, path: str, function: str, check: str) -> Answer:
        context = self._context
        async with progress_bar(context, f"Extracting a repro of {function}") as bar:
            repro = await bar.result_of(self._repros.extract(path, function, check, bar.report))
        if repro is None:
            return None
        opened = await self._opened(path, repro)
        if context.client.shows_documents:  # others have the answer to show
            message = f"Repro of {function}: {repro.summary}; saved as {repro.file}"
            context.start(self._offer(path, function, message), f"offering to reduce {function}")
        return opened

    async def _reduce(self, path: str, function: str) -> Answer:
        context = self._context
        interrupted = asyncio.Event()
        async with progress_bar(context, f"Reducing the repro of {function}") as bar:
            bar.when_cancelled(interrupted.set)
            repro = await self._repros.reduce(path, function, bar.report, interrupted)
        opened = await self._opened(path, repro)
        if context.client.shows_documents:
            context.show_message(types.MessageType.Info, f"{repro.summary}; saved as {repro.file}")
        return opened

    async def _opened(self, path: str, repro: ReproDocument) -> Answer:
        """Open a repro; return what the client is answered."""
        document = VirtualDocument(path, repro.function, repro.kind)
        content = await self._virtual_documents.compute(document)
        self._virtual_documents.refresh(path)
        await self._virtual_documents.open(document, content.text, repro.file)
        uri = document.uri()
        return {"uri": uri, "text": content.text, "file": repro.file, "summary": repro.summary}

    async def _offer(self, path: str, function: str, message: str) -> None:
        """Say what was extracted, and reduce it if the user wants that."""
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=notice(message),
            actions=[types.MessageActionItem(title=_REDUCE)],
        )
        connection = self._context.connection
        with contextlib.suppress(JsonRpcException):  # the client cannot ask
            answer = await connection.window_show_message_request_async(params)
            if answer is not None and answer.title == _REDUCE:
                await self._context.refusing(self._reduce(path, function))
