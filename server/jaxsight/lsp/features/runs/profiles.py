"""`jaxsight.openProfile PATH`: read a profile with progress, and show its report."""

from __future__ import annotations

import asyncio

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.uris import path_of
from jaxsight.lsp.documents.virtual_uris import PROFILE, VirtualDocument
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.notifications.progress import cancellable

OPEN_PROFILE = "jaxsight.openProfile"

Answer = dict[str, object] | None
"""The URI and the text of the report."""


class ProfileCommand:
    """Opens profiles for one connection."""

    def __init__(self, context: ClientContext, virtual_documents: VirtualDocuments) -> None:
        self._context = context
        self._virtual_documents = virtual_documents

    async def open(self, path: str) -> Answer:
        """Open a profile: a file, or a folder with runs; return `None` if it is cancelled.

        Raises:
            LookupError: there is none; the message says why.
        """
        return await self._context.answered(self._open(path), "a profile")

    async def _open(self, path: str) -> Answer:
        context = self._context
        # Editors end the path of a folder with a slash, which the document's URI would double.
        path = (path_of(path) or path).rstrip("/\\")
        stop = asyncio.Event()
        async with cancellable(context, "Reading the profile") as bar:
            bar.when_cancelled(stop.set)
            document = await context.session.open_profile(path, bar.report, stop)
        if document is None:
            return None
        shown = VirtualDocument(path, document, PROFILE)
        content = await self._virtual_documents.compute(shown)
        self._virtual_documents.refresh(path)
        await self._virtual_documents.open(shown, content.text)
        return {"uri": shown.uri(), "text": content.text}
