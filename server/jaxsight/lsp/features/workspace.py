"""Folders, settings, trust, Python environments and files on disk, as the client reports them.

Beyond the standard, a client may send `jaxsight/trust` `{"trusted"}` and `jaxsight/interpreters`
`{"interpreters": {folder URI: path}}` (also in `initializationOptions`).
"""

from __future__ import annotations

import asyncio
import linecache
import logging
from collections.abc import Mapping
from functools import partial

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.configuration import SECTION
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.uris import path_of, uri_of
from jaxsight.lsp.features.programs.registration import registrations as programs

log = logging.getLogger(__name__)

TRUST = "jaxsight/trust"
INTERPRETERS = "jaxsight/interpreters"
_FIRST_SHAPES = 1.0
"""Seconds from the start in which the server itself is busy with the first shapes: 0.6 s to the
first hover (`docs/performance.md`)."""
_WATCH_INTERVAL = 2.0
"""Seconds between two looks at the files of recorded runs, a choice: one `stat` for each project,
and shapes of a run that has ended are not waited for."""
WATCHED = ("**/*.py", "**/pyproject.toml", "**/.jaxsight/recorded.json")


async def initialized(context: ClientContext, params: types.InitializedParams) -> None:
    """Register for changes, then request the settings."""
    registrations = []
    if context.client.registers_configuration:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registrations.append(types.Registration("jaxsight/configuration", method, section))
    if context.client.registers_watched_files:
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
        files = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        registrations.append(types.Registration("jaxsight/files", method, files))
    context.start(_watch_recordings(context), "watching recordings")
    registrations += programs(context.client)
    if registrations:
        context.start(_register(context, registrations), "registering capabilities")
    context.start(_import_ahead(context), "importing ahead")
    await ask_settings(context)


async def _import_ahead(context: ClientContext) -> None:
    """Import what the first shapes do not need, once they are there or wait for JAX."""
    await asyncio.sleep(_FIRST_SHAPES)
    await context.session.preload()
    linecache.clearcache()  # attrs and cattrs put 2 MiB of generated methods there


async def _register(context: ClientContext, registrations: list[types.Registration]) -> None:
    params = types.RegistrationParams(registrations=registrations)
    try:
        await context.connection.client_register_capability_async(params)
    except JsonRpcException as error:
        log.warning("client rejected registrations for changes: %s", error)


async def _watch_recordings(context: ClientContext) -> None:
    """Look for recorded runs: not every client watches files, or from its start on."""
    while True:
        await asyncio.sleep(_WATCH_INTERVAL)
        context.session.look_for_recordings()


async def ask_settings(context: ClientContext) -> None:
    """Request the settings of the workspace and of each folder, and apply them."""
    if not context.client.answers_configuration:
        return
    questions = context.configuration.questions
    requested = [
        types.ConfigurationItem(section=section, scope_uri=uri_of(root) if root else None)
        for section, root in questions
    ]
    try:
        params = types.ConfigurationParams(items=requested)
        answers = await context.connection.workspace_configuration_async(params)
    except JsonRpcException as error:
        log.warning("client rejected the request for its settings: %s", error)
        return
    context.configuration.answered(questions, answers or ())
    context.apply_configuration()


async def configuration_changed(
    context: ClientContext, params: types.DidChangeConfigurationParams
) -> None:
    """Apply changed settings, from the notification or by a request."""
    context.configuration.push(params.settings)
    if context.client.answers_configuration:
        await ask_settings(context)
    else:
        context.apply_configuration()


async def folders_changed(
    context: ClientContext, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    """Add and remove workspace folders."""
    added, removed = params.event.added, params.event.removed
    context.configuration.move([each.uri for each in added], [each.uri for each in removed])
    context.apply_configuration()
    await ask_settings(context)


async def trust_changed(context: ClientContext, params: object) -> None:
    """Handle `jaxsight/trust`: whether code of the workspace may run.

    `true` takes effect if the policy follows the editor's trust.
    """
    context.configuration.trust(isinstance(params, Mapping) and params.get("trusted") is True)
    context.apply_configuration()


async def interpreters_changed(context: ClientContext, params: object) -> None:
    """Handle `jaxsight/interpreters`: the Python environments selected in the client."""
    interpreters = params.get("interpreters") if isinstance(params, Mapping) else None
    context.configuration.choose_interpreters(interpreters)
    context.apply_configuration()


async def files_changed(context: ClientContext, params: types.DidChangeWatchedFilesParams) -> None:
    """Notify the engine of files that changed on disk."""
    paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
    context.session.files_changed(paths)


async def saved(context: ClientContext, params: types.DidSaveTextDocumentParams) -> None:
    """Notify the engine of a saved document.

    If the client does not watch files, this also reports the file as changed on disk.
    """
    path = path_of(params.text_document.uri)
    if path is None:
        return
    context.session.saved(path)
    if not context.client.registers_watched_files:
        context.session.files_changed([path])


def register(context: ClientContext) -> None:
    """Serve the notifications about the workspace."""
    context.serve(types.INITIALIZED, partial(initialized, context))
    context.serve(types.WORKSPACE_DID_CHANGE_CONFIGURATION, partial(configuration_changed, context))
    context.serve(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, partial(folders_changed, context))
    context.serve(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, partial(files_changed, context))
    context.serve(types.TEXT_DOCUMENT_DID_SAVE, partial(saved, context))
    context.serve(TRUST, partial(trust_changed, context))
    context.serve(INTERPRETERS, partial(interpreters_changed, context))
