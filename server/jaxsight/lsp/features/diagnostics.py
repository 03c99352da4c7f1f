"""Diagnostics: pulled by clients that support it, pushed to the others, with the same content.

Pulled diagnostics carry a digest of the answer, so that nothing is sent twice; pushed ones carry
the version of the document.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.files import reading
from jaxsight.lsp.convert import SEVERITIES
from jaxsight.lsp.documents.text import Document, View
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.rules.finding import Finding, Place
from jaxsight.text.inert import one_line, visible

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)

SOURCE = "jaxsight"
_STALE = " (before the last edits)"


async def pull(
    server: JaxsightServer, params: types.DocumentDiagnosticParams
) -> types.DocumentDiagnosticReport:
    """Return the diagnostics of a document, or report that the client already has them."""
    uri = params.text_document.uri
    items: list[types.Diagnostic] = []
    if (view := server.documents.view(uri)) is not None:
        findings = await server.session.findings(view.path)
        elsewhere = await _elsewhere(server, findings)
        view = server.documents.view(uri)
        if view is not None:
            items = [
                diagnostic(server, view, finding, elsewhere)
                for finding in findings
                if view.holds(finding.range)
            ]
    result_id = hashlib.blake2b(repr(items).encode(errors="replace"), digest_size=8).hexdigest()
    if params.previous_result_id == result_id:
        return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
    return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=result_id)


class Publisher:
    """Pushes diagnostics of a file whenever they may have changed.

    One push per file runs at a time; a newer one cancels it.
    """

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self._running: dict[str, asyncio.Task[None]] = {}

    def schedule(self, path: str) -> None:
        """Push soon, unless the client pulls."""
        if self._server.client.pulls_diagnostics:
            return
        self._cancel(path)
        self._running[path] = self._server.background(
            self._push(path), f"publishing diagnostics of {path}"
        )

    def clear(self, path: str, uris: Iterable[str]) -> None:
        """Remove the diagnostics of closed documents."""
        if self._server.client.pulls_diagnostics:
            return
        if not self._server.documents.views(path):
            self._cancel(path)
        for uri in uris:
            self._publish(uri, None, [])

    def _cancel(self, path: str) -> None:
        if (task := self._running.pop(path, None)) is not None:
            task.cancel()

    async def _push(self, path: str) -> None:
        server = self._server
        findings = await server.session.findings(path)
        elsewhere = await _elsewhere(server, findings)
        for view in server.documents.views(path):
            items = [
                diagnostic(server, view, finding, elsewhere)
                for finding in findings
                if view.holds(finding.range)
            ]
            self._publish(view.uri, view.document.version, items)

    def _publish(self, uri: str, version: int | None, items: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=items)
        )


async def _elsewhere(server: JaxsightServer, findings: Iterable[Finding]) -> dict[str, Document]:
    """Read the files that findings refer to and that are not open, to convert columns."""
    if not server.client.related_information:
        return {}
    paths = {place.path for finding in findings for place in finding.related}
    closed = [path for path in paths if not server.documents.views(path)]
    texts = await asyncio.gather(*(asyncio.to_thread(_read, path) for path in closed))
    return {
        path: Document(uri_of(path), path, 0, text)
        for path, text in zip(closed, texts, strict=True)
    }


def _read(path: str) -> str:
    try:
        return reading.text(path, strict=False)
    except reading.UnreadableError as error:
        log.info("related place of a finding: %s", error)
        return ""


def diagnostic(
    server: JaxsightServer, view: View, finding: Finding, elsewhere: Mapping[str, Document]
) -> types.Diagnostic:
    """Convert a finding; `elsewhere` has the files that are not open, by path."""
    client = server.client
    related = None
    if client.related_information and finding.related:
        related = [_related(server, place, elsewhere) for place in finding.related]
    return types.Diagnostic(
        range=view.to_range(finding.range),
        message=_words(finding),
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(href=finding.url)
        if finding.url and client.code_descriptions
        else None,
        source=SOURCE,
        related_information=related,
    )


def _words(finding: Finding) -> str:
    """Return the message, then help and notes, a paragraph each."""
    message, *details = finding.lines
    stale = _STALE if finding.stale else ""
    return visible("\n".join((message + stale, *details)))


def _related(
    server: JaxsightServer, place: Place, elsewhere: Mapping[str, Document]
) -> types.DiagnosticRelatedInformation:
    view = server.documents.window(place.path, place.range)
    if view is None:
        document = elsewhere.get(place.path) or Document(uri_of(place.path), place.path, 0, "")
        view = View(document, server.documents.units)
    location = types.Location(uri=view.uri, range=view.to_range(place.range))
    return types.DiagnosticRelatedInformation(location=location, message=one_line(place.message))


def register(server: JaxsightServer) -> None:
    """Serve pull requests.

    An internal error must not look like a file without findings: the request is answered as
    cancelled.
    """

    async def answer(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        try:
            return await pull(server, params)
        except Exception as error:
            log.exception("diagnostics of %s", params.text_document.uri)
            raise JsonRpcException(
                code=types.LSPErrorCodes.ServerCancelled,
                message="failed to compute diagnostics; see the log for details",
                data={"retriggerRequest": False},
            ) from error

    server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE
        ),
    )(answer)
