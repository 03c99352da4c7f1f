"""Folders, settings, trust, Python environments and files on disk, as the client reports them.

Beyond the standard, a client may send `jaxsight/trust` `{"trusted"}` and `jaxsight/interpreters`
`{"interpreters": {folder URI: path}}` (also in `initializationOptions`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.configuration import SECTION
from jaxsight.lsp.documents.uris import path_of, uri_of
from jaxsight.lsp.start.warmup import warm

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)

TRUST = "jaxsight/trust"
INTERPRETERS = "jaxsight/interpreters"
WATCHED = ("**/*.py", "**/pyproject.toml")


async def initialized(server: JaxsightServer, params: types.InitializedParams) -> None:
    """Register for changes, then request the settings."""
    registrations = []
    if server.client.registers_configuration:
        registrations.append(
            types.Registration(
                id="jaxsight/configuration",
                method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
            )
        )
    if server.client.registers_watched_files:
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
        registrations.append(
            types.Registration(
                id="jaxsight/files",
                method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
            )
        )
    if registrations:
        server.background(_register(server, registrations), "registering capabilities")
    server.background(warm(server), "warming the converter")
    await ask_settings(server)


async def _register(server: JaxsightServer, registrations: list[types.Registration]) -> None:
    params = types.RegistrationParams(registrations=registrations)
    try:
        await server.client_register_capability_async(params)
    except JsonRpcException as error:
        log.warning("client rejected registrations for changes: %s", error)


async def ask_settings(server: JaxsightServer) -> None:
    """Request the settings of the workspace and of each folder, and apply them."""
    if not server.client.answers_configuration:
        return
    questions = server.configuration.questions
    items = [
        types.ConfigurationItem(section=section, scope_uri=uri_of(root) if root else None)
        for section, root in questions
    ]
    try:
        answers = await server.workspace_configuration_async(types.ConfigurationParams(items=items))
    except JsonRpcException as error:
        log.warning("client rejected the request for its settings: %s", error)
        return
    server.configuration.answered(questions, answers or ())
    server.configured()


async def configuration_changed(
    server: JaxsightServer, params: types.DidChangeConfigurationParams
) -> None:
    """Apply changed settings, from the notification or by a request."""
    server.configuration.push(params.settings)
    if server.client.answers_configuration:
        await ask_settings(server)
    else:
        server.configured()


async def folders_changed(
    server: JaxsightServer, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    """Add and remove workspace folders."""
    event = params.event
    server.configuration.move(
        [folder.uri for folder in event.added], [folder.uri for folder in event.removed]
    )
    server.configured()
    await ask_settings(server)


async def trust_changed(server: JaxsightServer, params: object) -> None:
    """Handle `jaxsight/trust`: whether code of the workspace may run.

    `true` takes effect if the policy follows the editor's trust.
    """
    server.configuration.trusted = isinstance(params, Mapping) and params.get("trusted") is True
    server.configured()


async def interpreters_changed(server: JaxsightServer, params: object) -> None:
    """Handle `jaxsight/interpreters`: the Python environments selected in the client."""
    given = params.get("interpreters") if isinstance(params, Mapping) else None
    server.configuration.choose_interpreters(given)
    server.configured()


async def files_changed(server: JaxsightServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Notify the engine of files that changed on disk."""
    paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
    server.session.files_changed(paths)


async def saved(server: JaxsightServer, params: types.DidSaveTextDocumentParams) -> None:
    """Notify the engine of a saved document.

    If the client does not watch files, this also reports the file as changed on disk.
    """
    path = path_of(params.text_document.uri)
    if path is None:
        return
    server.session.saved(path)
    if not server.client.registers_watched_files:
        server.session.files_changed([path])


def register(server: JaxsightServer) -> None:
    """Serve the notifications about the workspace."""
    server.answers(types.INITIALIZED, initialized)
    server.answers(types.WORKSPACE_DID_CHANGE_CONFIGURATION, configuration_changed)
    server.answers(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, folders_changed)
    server.answers(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, files_changed)
    server.answers(types.TEXT_DOCUMENT_DID_SAVE, saved)
    server.answers(TRUST, trust_changed)
    server.answers(INTERPRETERS, interpreters_changed)
