"""Capabilities of the client: read once, and looked up by name everywhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields

from lsprotocol import types
from pygls.capabilities import get_capability

REGISTERED = (
    types.TEXT_DOCUMENT_DEFINITION,
    types.TEXT_DOCUMENT_REFERENCES,
    types.TEXT_DOCUMENT_IMPLEMENTATION,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT,
)
"""Methods that are registered for some documents only, if the client can do that."""


def capability_of(method: str) -> str:
    """Return the name of a method's client capability: `document_highlight`."""
    name = method.removeprefix("textDocument/")
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _if(capability: str, item: str = "") -> bool:
    """Return a field that is set if a client has a capability, or an item of its list."""
    return field(default=False, metadata={"capability": capability, "item": item})


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """Capabilities, named by what they allow the server to do."""

    name: str = ""
    pulls_diagnostics: bool = False
    """It pulls diagnostics *and* supports the request to refresh them.

    Without the refresh it would show outdated diagnostics forever, as a trace may end, or another
    file change, while nobody types; the server pushes diagnostics to such a client.
    """
    refreshes_hints: bool = _if("workspace.inlay_hint.refresh_support")
    refreshes_lenses: bool = _if("workspace.code_lens.refresh_support")
    hover_markdown: bool = _if("text_document.hover.content_format", "markdown")
    resolves_tooltips: bool = _if("text_document.inlay_hint.resolve_support.properties", "tooltip")
    takes_actions: bool = _if("text_document.code_action.code_action_literal_support")
    resolves_edits: bool = False
    """It requests the edits of an action when the user selects the action."""
    document_changes: bool = _if("workspace.workspace_edit.document_changes")
    creates_files: bool = _if("workspace.workspace_edit.resource_operations", "create")
    """It creates files that an edit names."""
    applies_edits: bool = _if("workspace.apply_edit")
    related_information: bool = False
    code_descriptions: bool = False
    answers_configuration: bool = _if("workspace.configuration")
    registers_configuration: bool = _if("workspace.did_change_configuration.dynamic_registration")
    registers_watched_files: bool = _if("workspace.did_change_watched_files.dynamic_registration")
    shows_documents: bool = _if("window.show_document.support")
    shows_progress: bool = _if("window.work_done_progress")
    asks_content: bool = False
    """It opens generated documents by `workspace/textDocumentContent`."""
    knows_us: bool = False
    """It supports jaxsight's own notifications (`experimental.jaxsight`)."""
    registers: frozenset[str] = frozenset()
    """Methods that the server may register for some documents only."""

    @staticmethod
    def of(capabilities: types.ClientCapabilities, info: types.ClientInfo | None) -> ClientFeatures:
        """Read a client's capabilities; those that it does not mention are off."""

        def has(capability: str, item: str = "") -> bool:
            value = get_capability(capabilities, capability)
            return item in (value or ()) if item else bool(value)

        diagnostics = "text_document.publish_diagnostics"
        if pulls := has("text_document.diagnostic") and has(
            "workspace.diagnostics.refresh_support"
        ):
            diagnostics = "text_document.diagnostic"
        action, experimental = "text_document.code_action", capabilities.experimental
        return ClientFeatures(
            **{each.name: has(**each.metadata) for each in fields(ClientFeatures) if each.metadata},
            name=f"{info.name} {info.version or ''}".rstrip() if info else "",
            pulls_diagnostics=pulls,
            resolves_edits=has(f"{action}.resolve_support.properties", "edit")
            and has(f"{action}.data_support"),
            # Clients that pull often describe this under the older `publishDiagnostics` only.
            related_information=has(f"{diagnostics}.related_information")
            or has("text_document.publish_diagnostics.related_information"),
            code_descriptions=has(f"{diagnostics}.code_description_support")
            or has("text_document.publish_diagnostics.code_description_support"),
            asks_content=capabilities.workspace is not None
            and capabilities.workspace.text_document_content is not None,
            knows_us=isinstance(experimental, dict) and bool(experimental.get("jaxsight")),
            registers=frozenset(
                method
                for method in REGISTERED
                if has(f"text_document.{capability_of(method)}.dynamic_registration")
            ),
        )
