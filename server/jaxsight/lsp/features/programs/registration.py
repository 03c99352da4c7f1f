"""Which clients get the features of printed programs, for which documents.

A client that registers features at run time gets them for our documents only. Others would request
them for Python files too, where some take the first server's answer, even an empty one (Helix 25.01
goes to the definition of one server only). They get these features if they opt in.
"""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.lsp.client import REGISTERED, ClientFeatures, capability_of
from jaxsight.lsp.documents.virtual_uris import scheme_of

_PROGRAMS: list[types.DocumentFilter] = [
    *(types.TextDocumentFilterScheme(scheme=scheme_of(language)) for language in LANGUAGES),
    *(types.TextDocumentFilterLanguage(language=language) for language in LANGUAGES),
]


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
    registrations = []
    for method in sorted(client.registers):
        selector = [*_PROGRAMS]
        if method == types.TEXT_DOCUMENT_IMPLEMENTATION:
            selector.append(types.TextDocumentFilterLanguage(language="python"))
        options = types.TextDocumentRegistrationOptions(document_selector=selector)
        registrations.append(types.Registration(f"jaxsight/{_provider(method)}", method, options))
    return registrations
