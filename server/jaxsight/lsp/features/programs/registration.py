"""Which clients get the features of printed programs, and for which documents.

A client that registers features at run time gets them for our documents only. Others would request
them for Python files too, where some take the first server's answer, even an empty one (Helix 25.01
goes to the definition of one server only). They get these features if they opt in.
"""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.lsp.client import REGISTERED, ClientFeatures, capability_of
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


_MORE: dict[str, types.DocumentFilter] = {
    types.TEXT_DOCUMENT_IMPLEMENTATION: _PYTHON,
    "textDocument/callHierarchy": _ANY,
}
"""Where else features are served, by their methods."""


def _provider(method: str) -> str:
    return f"{capability_of(method)}_provider"


def limit(
    capabilities: types.ServerCapabilities, client: ClientFeatures, *, opted_in: bool
) -> None:
    """Remove the capabilities that are registered later, or that the client does not get."""
    for method in REGISTERED:
        if method in client.registers or not opted_in:
            setattr(capabilities, _provider(method), None)


def registrations(client: ClientFeatures) -> list[types.Registration]:
    """Return what to register once the client is initialized."""
    return [
        types.Registration(f"jaxsight/{_provider(method)}", method, _options(method))
        for method in REGISTERED
        if method in client.registers
    ]


def _options(
    method: str,
) -> types.TextDocumentRegistrationOptions | types.SemanticTokensRegistrationOptions:
    selector = [*_PROGRAMS, *([_MORE[method]] if method in _MORE else [])]
    if method == "textDocument/semanticTokens":
        return types.SemanticTokensRegistrationOptions(
            legend=LEGEND, document_selector=selector, full=True, range=True
        )
    return types.TextDocumentRegistrationOptions(document_selector=selector)
