"""`textDocument/codeAction` and `codeAction/resolve`: the engine's actions.

The client may restrict the kinds.
Edits that take long to compute are computed when the user selects the action, if the client
supports that.
Actions that the client cannot apply are not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lsprotocol import types

from jaxsight.features.code_actions import OPEN_PANEL
from jaxsight.features.model import Action, ActionKind
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import text_edit, unconverted
from jaxsight.lsp.documents.text import DocumentWindow
from jaxsight.lsp.features.diagnostics import diagnostic
from jaxsight.source.text import Edit
from jaxsight.text.inert import one_line

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite)


async def actions(
    context: ClientContext, params: types.CodeActionParams
) -> list[types.CodeAction] | None:
    """Return actions for a range.

    The client's `diagnostics` are not used, because some clients send none.
    """
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is None or not context.client.takes_actions:
        return None
    context.cursors.selected(uri, params.range, params.context.trigger_kind)
    engine_actions = await context.session.actions(view.path, view.range(params.range))
    view = context.documents.window_of(uri)
    if view is None:
        return None
    only = params.context.only
    return [
        _action(context, view, action)
        for action in engine_actions
        if _is_requested(action.kind, only)
        and _is_supported(context, action)
        and (action.file or all(view.holds(edit.range) for edit in action.edits))
    ]


def _is_supported(context: ClientContext, action: Action) -> bool:
    """Return whether the client supports the action: late edits, files, or opening documents."""
    client = context.client
    if action.command == OPEN_PANEL:
        return not client.knows_us  # others have a panel, or a command for this
    if action.file:
        return client.document_changes and client.creates_files
    if action.pending and not action.edits:
        return client.resolves_edits
    return client.shows_documents or client.knows_us or not action.command


async def resolve(context: ClientContext, action: types.CodeAction) -> types.CodeAction:
    """Return the action with its edits.

    If there are none, the user is shown the reason, and nothing is edited.
    """
    match action.data:
        case {"uri": str(uri), "pending": str(pending)} if view := context.documents.window_of(uri):
            pass
        case _:
            return action
    version = view.document.version
    try:
        edits = await context.session.resolve(view.path, pending)
    except LookupError as error:
        context.refuse(str(error))
        return action
    view = context.documents.window_of(uri)
    if view is not None and view.document.version == version:
        action.edit = _workspace_edit(context, view, edits)
    return action


def _is_requested(kind: ActionKind, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Return whether `only` has this kind or one above it; the empty kind is above all."""
    if only is None:
        return True
    kinds = [str(getattr(above, "value", above)) for above in only]
    return any(above in ("", kind) or kind.startswith(f"{above}.") for above in kinds)


def _action(context: ClientContext, view: DocumentWindow, action: Action) -> types.CodeAction:
    title = one_line(action.title)
    converted = types.CodeAction(title=title, kind=action.kind)
    if action.finding is not None:
        converted.diagnostics = [diagnostic(context, view, action.finding)]
        converted.is_preferred = action.preferred
    if action.pending and context.client.resolves_edits:
        converted.data = {"uri": view.uri, "pending": action.pending}
    elif action.command:
        arguments = list(action.arguments)
        converted.command = types.Command(title=title, command=action.command, arguments=arguments)
    else:
        converted.edit = workspace_edit(context, view, action)
    return converted


def workspace_edit(
    context: ClientContext, view: DocumentWindow, action: Action
) -> types.WorkspaceEdit:
    """Return the edits of an action: of the document, or of a file that need not exist."""
    if not action.file:
        return _workspace_edit(context, view, action.edits)
    uri = Path(action.file).as_uri()
    options = types.CreateFileOptions(ignore_if_exists=True)
    created = types.CreateFile(uri=uri, kind="create", options=options)
    # The file is not open; `features/proposals` edits whole lines.
    edits: list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit] = [
        types.TextEdit(unconverted(edit.range), edit.text) for edit in action.edits
    ]
    document = types.OptionalVersionedTextDocumentIdentifier(uri=uri)
    changes = types.TextDocumentEdit(text_document=document, edits=edits)
    return types.WorkspaceEdit(document_changes=[created, changes])


def _workspace_edit(
    context: ClientContext, view: DocumentWindow, edits: Sequence[Edit]
) -> types.WorkspaceEdit:
    """Return the edits of one document.

    They carry its version if the client supports that, so that an outdated edit is rejected.
    """
    changed = [text_edit(view, edit) for edit in edits]
    if not context.client.document_changes:
        return types.WorkspaceEdit(changes={view.uri: changed})
    version = view.document.version
    document = types.OptionalVersionedTextDocumentIdentifier(uri=view.uri, version=version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, changed)])


def register(context: ClientContext) -> None:
    """Serve code actions."""
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    context.serve(types.TEXT_DOCUMENT_CODE_ACTION, partial(actions, context), options)
    context.connection.feature(types.CODE_ACTION_RESOLVE)(partial(resolve, context))
