"""Capabilities of the client: read once, and looked up by name everywhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

REGISTERED = (
    types.TEXT_DOCUMENT_DEFINITION,
    types.TEXT_DOCUMENT_REFERENCES,
    types.TEXT_DOCUMENT_IMPLEMENTATION,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
    types.TEXT_DOCUMENT_FOLDING_RANGE,
    types.TEXT_DOCUMENT_SELECTION_RANGE,
    "textDocument/semanticTokens",
    "textDocument/callHierarchy",
)
"""Methods that are registered for some documents only, if the client can do that."""


def _field(method: str) -> str:
    """Return the name of a method's client capability: `document_highlight`."""
    name = method.removeprefix("textDocument/")
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """Capabilities, named by what they allow the server to do."""

    name: str = ""
    pulls_diagnostics: bool = False
    """It pulls diagnostics *and* supports the request to refresh them.

    Without the refresh it would show outdated diagnostics forever, as a trace may end, or another
    file change, while nobody types; the server pushes diagnostics to such a client.
    """
    refreshes_hints: bool = False
    refreshes_lenses: bool = False
    hover_markdown: bool = False
    completion_markdown: bool = False
    resolves_tooltips: bool = False
    takes_actions: bool = False
    resolves_edits: bool = False
    """It requests the edits of an action when the user selects the action."""
    document_changes: bool = False
    creates_files: bool = False
    """It creates files that an edit names."""
    applies_edits: bool = False
    related_information: bool = False
    code_descriptions: bool = False
    answers_configuration: bool = False
    registers_configuration: bool = False
    registers_watched_files: bool = False
    shows_documents: bool = False
    shows_progress: bool = False
    asks_content: bool = False
    """It opens generated documents by `workspace/textDocumentContent`."""
    knows_us: bool = False
    """It supports jaxsight's own notifications (`experimental.jaxsight`)."""
    registers: frozenset[str] = frozenset()
    """Methods that the server may register for some documents only."""

    @staticmethod
    def of(capabilities: types.ClientCapabilities, info: types.ClientInfo | None) -> ClientFeatures:
        """Read a client's capabilities; those that it does not mention are off."""

        def has(field: str) -> bool:
            return bool(get_capability(capabilities, field))

        def listed(field: str) -> Sequence[Any]:
            return get_capability(capabilities, field) or ()

        diagnostics = "text_document.publish_diagnostics"
        if pulls := has("text_document.diagnostic") and has(
            "workspace.diagnostics.refresh_support"
        ):
            diagnostics = "text_document.diagnostic"
        experimental = capabilities.experimental
        return ClientFeatures(
            name=f"{info.name} {info.version or ''}".rstrip() if info else "",
            pulls_diagnostics=pulls,
            refreshes_hints=has("workspace.inlay_hint.refresh_support"),
            refreshes_lenses=has("workspace.code_lens.refresh_support"),
            hover_markdown="markdown" in listed("text_document.hover.content_format"),
            completion_markdown="markdown"
            in listed("text_document.completion.completion_item.documentation_format"),
            resolves_tooltips="tooltip"
            in listed("text_document.inlay_hint.resolve_support.properties"),
            takes_actions=has("text_document.code_action.code_action_literal_support"),
            resolves_edits="edit" in listed("text_document.code_action.resolve_support.properties")
            and has("text_document.code_action.data_support"),
            document_changes=has("workspace.workspace_edit.document_changes"),
            creates_files="create" in listed("workspace.workspace_edit.resource_operations"),
            applies_edits=has("workspace.apply_edit"),
            # Clients that pull often describe this under the older `publishDiagnostics` only.
            related_information=has(f"{diagnostics}.related_information")
            or has("text_document.publish_diagnostics.related_information"),
            code_descriptions=has(f"{diagnostics}.code_description_support")
            or has("text_document.publish_diagnostics.code_description_support"),
            answers_configuration=has("workspace.configuration"),
            registers_configuration=has("workspace.did_change_configuration.dynamic_registration"),
            registers_watched_files=has("workspace.did_change_watched_files.dynamic_registration"),
            shows_documents=has("window.show_document.support"),
            shows_progress=has("window.work_done_progress"),
            asks_content=capabilities.workspace is not None
            and capabilities.workspace.text_document_content is not None,
            knows_us=isinstance(experimental, dict) and bool(experimental.get("jaxsight")),
            registers=frozenset(
                method
                for method in REGISTERED
                if has(f"text_document.{_field(method)}.dynamic_registration")
            ),
        )
