"""The whole way with the real engine, for each editor: messages in, shapes of real JAX code out.

pytest-lsp checks what comes against the capabilities of the editor: its warnings are errors.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from tests.e2e.editor import Editor, on, span
from tests.e2e.programs import ATTENTION, ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNITS_OF_THE_EMOJI = {"utf-8": 4, "utf-16": 2, "utf-32": 1}


def open_program(editor: Editor, project: Path, name: str, text: str, version: int = 1) -> str:
    """Open a program under a name of its own for each test."""
    uri = (project / name).as_uri()
    editor.open(uri, text, version)
    return uri


async def test_hovers_hints_and_errors_are_in_the_columns_of_the_editor(
    editor: Editor, project: Path
) -> None:
    uri = open_program(editor, project, "model.py", ATTENTION)
    units = UNITS_OF_THE_EMOJI[editor.server_capabilities.position_encoding or "utf-16"]
    column = len('    s = "') + units + len('"; ')
    text = await editor.hover_text(uri, 4, 6)
    assert "-> f32[4,128,8,64]" in text
    assert "lambda ;" in text
    assert (await editor.hover(uri, 4, 6)).range == span(4, 4, 13)
    assert "scores: f32[4,8,128,128]" in await editor.hover_text(uri, 13, column + 2)
    assert (await editor.hover(uri, 13, column + 2)).range == span(13, column, column + 6)
    assert [(hint.position, hint.label) for hint in await editor.hints(uri)] == [
        (types.Position(13, column + 6), ": f32[4,8,128,128]"),
        (types.Position(14, 11), ": f32[4,8,128,128]"),
    ]
    diagnostics = await editor.diagnostics_of(uri)
    assert [(diagnostic.code, diagnostic.range) for diagnostic in diagnostics] == [
        ("JX401", span(23, 7, 18))
    ]


async def test_names_are_completed_in_a_section(editor: Editor, project: Path) -> None:
    section = '"""\n    Example inputs:\n        \n    """\n    '
    text = f"def plain(x, *, scale=2.0):\n    {section}return x * scale\n"
    uri = open_program(editor, project, "completion.py", text)
    params = types.CompletionParams(on(uri), types.Position(3, 8))
    completions = await editor.text_document_completion_async(params)
    assert isinstance(completions, types.CompletionList)
    assert {"x", "scale"} <= {proposal.label for proposal in completions.items}


async def test_action_edits_the_document_as_the_editor_can(editor: Editor, project: Path) -> None:
    text = "def plain(x, *, scale=2.0):\n    return x * scale\n"
    uri = open_program(editor, project, "action.py", text, version=3)
    action, *_ = await editor.code_actions(uri, span(0, 5, 5))
    if action.edit is None:  # proposals are being tried
        action = await editor.code_action_resolve_async(action)
    assert action.edit is not None
    assert editor.capabilities is not None
    workspace = editor.capabilities.workspace
    assert workspace is not None
    assert workspace.workspace_edit is not None
    if workspace.workspace_edit.document_changes:
        assert action.edit.document_changes is not None
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document == types.OptionalVersionedTextDocumentIdentifier(uri, 3)
        (edit,) = change.edits
    else:
        assert action.edit.changes is not None
        (edit,) = action.edit.changes[uri]
    assert isinstance(edit, types.TextEdit)
    assert "Example inputs:" in edit.new_text


async def test_edit_is_answered_from_the_new_text_and_a_broken_one_from_the_old(
    editor: Editor, project: Path
) -> None:
    uri = open_program(editor, project, "edit.py", ATTENTION)
    await editor.hover(uri, 4, 6)
    line = ATTENTION.splitlines()[14]
    editor.edit(uri, 2, "weights = scores[:, :, :7]", span(14, 4, len(line)))
    assert "weights: f32[4,8,7,128]" in await editor.hover_text(uri, 14, 6)
    editor.edit(uri, 3, "# a comment\n", span(1, 0, 0))
    assert "weights: f32[4,8,7,128]" in await editor.hover_text(uri, 15, 6)
    editor.edit(uri, 4, "return (", span(16, 4, 10))
    assert "stale" in await editor.hover_text(uri, 5, 6)


async def test_finding_of_a_gradient_is_reported(editor: Editor, project: Path) -> None:
    uri = open_program(editor, project, "gradient.py", ROOT)
    diagnostics = await editor.diagnostics_of(uri)
    assert [diagnostic.code for diagnostic in diagnostics] == ["JX405"]
    assert not [message for message in editor.messages if message.type == types.MessageType.Error]
