"""`textDocument/codeAction` and `codeAction/resolve`: the engine's actions.

The client may restrict the kinds.
Edits that take long to compute are computed when the user selects the action, if the client
supports that.
Actions that the client cannot apply are not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.features.model import Action
from jaxsight.lsp.convert import text_edit
from jaxsight.lsp.documents.text import View
from jaxsight.lsp.features.diagnostics import diagnostic
from jaxsight.text.inert import one_line

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite)


async def actions(
    server: JaxsightServer, params: types.CodeActionParams
) -> list[types.CodeAction] | None:
    """Return actions for a range.

    The client's `diagnostics` are not used, because some clients send none.
    """
    uri = params.text_document.uri
    view = server.documents.view(uri)
    if view is None or not server.client.takes_actions:
        return None
    found = await server.session.actions(view.path, view.range(params.range))
    view = server.documents.view(uri)
    if view is None:
        return None
    only = params.context.only
    return [
        _action(server, view, action)
        for action in found
        if _asked_for(action.kind, only)
        and _can_be_done(server, action)
        and all(view.holds(edit.range) for edit in action.edits)
    ]


def _can_be_done(server: JaxsightServer, action: Action) -> bool:
    """Return whether the client supports the action: late edits, or opening a document."""
    if action.pending:
        return server.client.resolves_edits
    return server.client.shows_documents or not action.command


async def resolve(server: JaxsightServer, action: types.CodeAction) -> types.CodeAction:
    """Return the action with its edits.

    If there are none, the user is shown the reason, and nothing is edited.
    """
    match action.data:
        case {"uri": str(uri), "pending": str(pending)}:
            view = server.documents.view(uri)
        case _:
            return action
    if view is None:
        return action
    version = view.document.version
    try:
        edits = await server.session.resolve(view.path, pending)
    except LookupError as error:
        server.tell_person(types.MessageType.Warning, str(error))
        return action
    view = server.documents.view(uri)
    if view is not None and view.document.version == version:
        changed = [text_edit(view, edit) for edit in edits]
        action.edit = _workspace_edit(server, view, changed)
    return action


def _asked_for(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Return whether `only` has this kind or one above it; the empty kind is above all."""
    if only is None:
        return True
    wanted = [str(getattr(asked, "value", asked)) for asked in only]
    return any(asked in ("", kind) or kind.startswith(asked + ".") for asked in wanted)


def _action(server: JaxsightServer, view: View, action: Action) -> types.CodeAction:
    title = one_line(action.title)
    made = types.CodeAction(title=title, kind=action.kind)
    if action.finding is not None:
        made.diagnostics = [diagnostic(server, view, action.finding, {})]
        made.is_preferred = action.preferred
    if action.pending:
        made.data = {"uri": view.uri, "pending": action.pending}
    elif action.command:
        arguments = list(action.arguments)
        made.command = types.Command(title=title, command=action.command, arguments=arguments)
    else:
        edits = [text_edit(view, edit) for edit in action.edits]
        made.edit = _workspace_edit(server, view, edits)
    return made


def _workspace_edit(
    server: JaxsightServer, view: View, edits: list[types.TextEdit]
) -> types.WorkspaceEdit:
    """Return the edits of one document.

    They carry its version if the client supports that, so that an outdated edit is rejected.
    """
    if not server.client.document_changes:
        return types.WorkspaceEdit(changes={view.uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(
        uri=view.uri, version=view.document.version
    )
    changes = [types.TextDocumentEdit(text_document=document, edits=edits)]
    return types.WorkspaceEdit(document_changes=changes)


def register(server: JaxsightServer) -> None:
    """Serve code actions."""
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    server.answers(types.TEXT_DOCUMENT_CODE_ACTION, actions, options)

    async def answer(action: types.CodeAction) -> types.CodeAction:
        return await resolve(server, action)

    server.feature(types.CODE_ACTION_RESOLVE)(answer)
