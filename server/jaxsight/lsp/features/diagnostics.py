"""Diagnostics: pulled by clients that support it, pushed to the others, with the same content.

Pulled diagnostics carry a digest of the answer, so that nothing is sent twice; pushed ones carry
the version of the document.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from functools import partial

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import SEVERITIES, unconverted
from jaxsight.lsp.documents.text import DocumentWindow
from jaxsight.lsp.documents.uris import uri_key, uri_of
from jaxsight.rules.finding import Finding, Place
from jaxsight.source.text import Position
from jaxsight.text.inert import one_line, visible

log = logging.getLogger(__name__)

SOURCE = "jaxsight"
_STALE = " (before the last edits)"


class Diagnostics:
    """Answers clients that pull, and pushes to the others whenever diagnostics may have changed.

    One push per file runs at a time; a newer one cancels it.
    """

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._pushes: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, tuple[tuple[int, ...], list[Finding]]] = {}
        """The findings that a client shows for a file, and the versions of its documents."""

    def register(self) -> None:
        """Serve pull requests."""
        options = types.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE
        )
        serve = self._context.connection.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
        serve(partial(self._answer))  # pygls sets attributes, which methods do not have

    async def _answer(
        self, params: types.DocumentDiagnosticParams
    ) -> types.DocumentDiagnosticReport:
        """Return the diagnostics of a document, or report that the client already has them.

        An internal error must not look like a file without findings: the request is answered as
        cancelled.
        """
        uri = params.text_document.uri
        try:
            view = self._context.documents.window_of(uri)
            found = await self._diagnostics(view.path) if view is not None else {}
        except Exception as error:
            log.exception("diagnostics of %s", uri)
            raise JsonRpcException(
                code=types.LSPErrorCodes.ServerCancelled,
                message="failed to compute diagnostics; see the log for details",
                data={"retriggerRequest": False},
            ) from error
        own = (each for at, (_, each) in found.items() if uri_key(at) == uri_key(uri))
        diagnostics = next(own, [])
        content = repr(diagnostics).encode(errors="replace")
        result_id = hashlib.blake2b(content, digest_size=8).hexdigest()
        if params.previous_result_id == result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
        return types.RelatedFullDocumentDiagnosticReport(items=diagnostics, result_id=result_id)

    def schedule(self, path: str) -> None:
        """Push soon, unless the client pulls."""
        if self._context.client.pulls_diagnostics:
            return
        self._cancel(path)
        self._pushes[path] = self._context.start(
            self._push(path), f"publishing diagnostics of {path}"
        )

    def clear(self, path: str, uris: Iterable[str]) -> None:
        """Remove the diagnostics of closed documents."""
        if not self._context.documents.windows(path):
            self._cancel(path)
            self._last.pop(path, None)
        if self._context.client.pulls_diagnostics:
            return
        for uri in uris:
            self._publish(uri, None, [])

    async def _diagnostics(self, path: str) -> dict[str, tuple[int, list[types.Diagnostic]]]:
        """Return the diagnostics of a file's documents by URI, each with the document's version.

        Fixes of the findings are verified from now on.
        """
        context = self._context
        session, versions = self._context.session, self._versions(path)
        report = await session.report(path)
        session.start_fixes(path, report)
        if versions == self._versions(path):
            self._last[path] = versions, report.reported
        return {
            view.uri: (
                view.document.version,
                [
                    diagnostic(context, view, finding)
                    for finding in report.reported
                    if view.holds(finding.range)
                ],
            )
            for view in context.documents.windows(path)
        }

    def published_at(self, path: str, position: Position) -> list[Finding]:
        """Return the findings at a position of the current text that the client shows."""
        versions, findings = self._last.get(path, ((), []))
        if versions != self._versions(path):
            return []
        return [finding for finding in findings if position in finding.range]

    def _versions(self, path: str) -> tuple[int, ...]:
        return tuple(view.document.version for view in self._context.documents.windows(path))

    def _cancel(self, path: str) -> None:
        if (task := self._pushes.pop(path, None)) is not None:
            task.cancel()

    async def _push(self, path: str) -> None:
        for uri, (version, diagnostics) in (await self._diagnostics(path)).items():
            self._publish(uri, version, diagnostics)

    def _publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        self._context.connection.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=diagnostics)
        )


def diagnostic(context: ClientContext, view: DocumentWindow, finding: Finding) -> types.Diagnostic:
    """Convert a finding."""
    client, related, page = context.client, None, None
    if client.related_information and finding.related:
        related = [_related(context, mention) for mention in finding.related]
    if client.code_descriptions and finding.url:
        page = types.CodeDescription(finding.url)
    # Lists of problems show all of a message; help and notes are in hovers.
    message = visible(finding.message + (_STALE if finding.stale else ""))
    return types.Diagnostic(
        range=view.to_range(finding.range),
        message=message,
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=page,
        source=SOURCE,
        related_information=related,
    )


def _related(context: ClientContext, mention: Place) -> types.DiagnosticRelatedInformation:
    view = context.documents.window(mention.path, mention.range)
    if view is not None:
        location = types.Location(uri=view.uri, range=view.to_range(mention.range))
    else:  # places in files that are not open are whole lines
        location = types.Location(uri_of(mention.path), unconverted(mention.range))
    return types.DiagnosticRelatedInformation(location=location, message=one_line(mention.message))
