"""Which clients get the features of printed programs, and for which documents.

A client that registers features at run time gets them for our documents only. Others would request
them for Python files too, where some take the first server's answer, even an empty one (Helix 25.01
goes to the definition of one server only). They get these features if they opt in.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.lsp.client import ClientFeatures
from jaxsight.lsp.documents.virtual_uris import scheme_of
from jaxsight.lsp.features.programs.tokens import LEGEND

_PROGRAMS: list[types.DocumentFilter] = [
    *(types.TextDocumentFilterScheme(scheme=scheme_of(language)) for language in LANGUAGES),
    *(types.TextDocumentFilterLanguage(language=language) for language in LANGUAGES),
]
_PYTHON = types.TextDocumentFilterLanguage(language="python")
_ANY = types.TextDocumentFilterLanguage(language="*")
"""VS Code takes call hierarchies from one server only, that with the best match.

This is the worst one, so that other servers have priority (`languageSelector.ts` in VS Code).
"""


@dataclass(frozen=True, slots=True)
class _Feature:
    """A feature: its method, the capability for it, and where else it is served."""

    method: str
    capability: str
    more: tuple[types.DocumentFilter, ...] = ()


_FEATURES = (
    _Feature(types.TEXT_DOCUMENT_DEFINITION, "definition_provider"),
    _Feature(types.TEXT_DOCUMENT_REFERENCES, "references_provider"),
    _Feature(types.TEXT_DOCUMENT_IMPLEMENTATION, "implementation_provider", (_PYTHON,)),
    _Feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, "document_highlight_provider"),
    _Feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, "document_symbol_provider"),
    _Feature(types.TEXT_DOCUMENT_FOLDING_RANGE, "folding_range_provider"),
    _Feature(types.TEXT_DOCUMENT_SELECTION_RANGE, "selection_range_provider"),
    _Feature("textDocument/semanticTokens", "semantic_tokens_provider"),
    _Feature("textDocument/callHierarchy", "call_hierarchy_provider", (_ANY,)),
)


def limit(
    capabilities: types.ServerCapabilities, client: ClientFeatures, *, opted_in: bool
) -> None:
    """Remove the capabilities that are registered later, or that the client does not get."""
    for feature in _FEATURES:
        if feature.method in client.registers or not opted_in:
            setattr(capabilities, feature.capability, None)


def registrations(client: ClientFeatures) -> list[types.Registration]:
    """Return what to register once the client is initialized."""
    return [
        types.Registration(f"jaxsight/{feature.capability}", feature.method, _options(feature))
        for feature in _FEATURES
        if feature.method in client.registers
    ]


def _options(
    feature: _Feature,
) -> types.TextDocumentRegistrationOptions | types.SemanticTokensRegistrationOptions:
    selector = [*_PROGRAMS, *feature.more]
    if feature.method == "textDocument/semanticTokens":
        return types.SemanticTokensRegistrationOptions(
            legend=LEGEND, document_selector=selector, full=True, range=True
        )
    return types.TextDocumentRegistrationOptions(document_selector=selector)
