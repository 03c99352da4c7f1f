"""The whole way with the real engine, for what only VS Code shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.e2e.editor import Editor, answer_to, on, span
from tests.e2e.programs import ATTENTION, ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_lens_switches_to_another_set(vscode: Editor, project: Path) -> None:
    uri = (project / "lens.py").as_uri()
    vscode.open(uri, ATTENTION)
    vscode.choose = lambda params: params.actions[1]
    lenses = await vscode.lenses(uri)
    assert lenses[0].range == span(4, 0, 0)
    await vscode.execute(lenses[0].command)
    assert "-> f32[4,1,8,64]" in await vscode.hover_text(uri, 4, 6)
    after = (await vscode.lenses(uri))[0].command
    assert after is not None
    assert "decode" in after.title
    await vscode.receive(types.WORKSPACE_CODE_LENS_REFRESH)


async def test_action_adds_a_section_in_which_names_are_completed(
    vscode: Editor, project: Path
) -> None:
    uri = (project / "action.py").as_uri()
    vscode.open(uri, "def plain(x, *, scale=2.0):\n    return x * scale\n", version=3)
    action, *_ = await vscode.code_actions(uri, span(0, 5, 5))
    if action.edit is None:  # proposals are being tried
        action = await vscode.code_action_resolve_async(action)
    edit = only_edit(action, uri, version=3)
    assert "Example inputs:" in edit.new_text
    vscode.edit(uri, 4, edit.new_text, edit.range)
    section = '"""\n    Example inputs:\n        \n    """\n    '
    vscode.edit(uri, 5, f"def plain(x, *, scale=2.0):\n    {section}return x * scale\n")
    params = types.CompletionParams(on(uri), types.Position(3, 8))
    completions = await vscode.text_document_completion_async(params)
    assert isinstance(completions, types.CompletionList)
    assert {"x", "scale"} <= {proposal.label for proposal in completions.items}


def edits(action: types.CodeAction, uri: str, version: int) -> list[types.TextEdit]:
    """Return the edits of an action, all of one version of one document."""
    assert action.edit is not None
    assert action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document == types.OptionalVersionedTextDocumentIdentifier(uri, version)
    return [edit for edit in change.edits if isinstance(edit, types.TextEdit)]


def only_edit(action: types.CodeAction, uri: str, version: int) -> types.TextEdit:
    (edit,) = edits(action, uri, version)
    return edit


async def test_whole_jaxpr_is_a_document_whose_lines_lead_back(
    vscode: Editor, project: Path
) -> None:
    uri = (project / "made.py").as_uri()
    vscode.open(uri, ATTENTION)
    commands = [lens.command for lens in await vscode.lenses(uri) if lens.command is not None]
    show = next(command for command in commands if command.command == "jaxsight.show")
    earlier = len(vscode.shown_documents)
    shown = await vscode.execute(show)
    (document,) = vscode.shown_documents[earlier:]
    assert document.uri == shown["uri"]
    params = types.TextDocumentContentParams(shown["uri"])
    content = await vscode.workspace_text_document_content_async(params)
    assert content.text == shown["text"]
    assert "dot_general" in content.text
    linked = await vscode.linked_content(shown["uri"])
    lines = linked["text"].splitlines()
    sources = {
        re.split(r"[ \[]", lines[link["line"]].split("= ")[1])[0]: link["range"]["start"]["line"]
        for link in linked["links"]
        if "= " in lines[link["line"]]
    }
    assert sources["dot_general"] in (13, 15)
    assert sources["exp"] == 14
    assert {link["uri"] for link in linked["links"]} == {uri}


async def test_source_of_a_function_opens_beside_it_with_lines_that_lead_back(
    vscode: Editor, project: Path
) -> None:
    uri = (project / "sourcerized.py").as_uri()
    vscode.open(uri, ATTENTION)
    kind = "refactor.rewrite.jaxsight.sourcerize"
    actions = await vscode.code_actions(uri, span(14, 4, 11), only=kind)
    (action,) = [action for action in actions if "pure lax source" in action.title]
    shown = await vscode.execute(action.command)
    assert shown["uri"].endswith("/sourcerized.py/attention.lax.py")
    assert vscode.shown_documents[-1].uri == shown["uri"]
    linked = await vscode.linked_content(shown["uri"])
    assert linked["text"] == shown["text"]
    lines = linked["text"].splitlines()
    sources = {
        lines[link["line"]].split(" = ")[-1].partition("(")[0]: link["range"]["start"]["line"]
        for link in linked["links"]
    }
    assert sources["lax.exp"] == 14
    assert sources["lax.dot_general"] in (13, 15)
    assert {link["uri"] for link in linked["links"]} == {uri}


async def test_source_of_a_function_is_put_below_it_when_that_is_chosen(
    vscode: Editor, project: Path
) -> None:
    uri = (project / "below.py").as_uri()
    vscode.open(uri, ATTENTION, version=5)
    actions = await vscode.code_actions(uri, span(4, 6, 6))
    (action,) = [action for action in actions if "attention_jax" in action.title]
    assert action.edit is None
    resolved = await vscode.code_action_resolve_async(action)
    function = only_edit(resolved, uri, version=5)  # what it imports the file does already
    line = ATTENTION.splitlines()[15]
    assert function.range == span(15, len(line), len(line))
    assert function.new_text.startswith("\n\n\ndef attention_jax(q, k, v):\n")


async def test_quick_fix_is_offered_with_what_it_is_good_for(vscode: Editor, project: Path) -> None:
    uri = (project / "fixed.py").as_uri()
    vscode.open(uri, ROOT, version=7)
    diagnostics = await vscode.diagnostics_of(uri)
    actions: list[types.CodeAction] = []
    for _ in range(60):  # each request waits for a moment
        actions = await vscode.code_actions(uri, span(8, 12, 12), "quickfix", diagnostics)
        if actions:
            break
    (action,) = actions
    assert (action.kind, action.is_preferred) == (types.CodeActionKind.QuickFix, True)
    assert action.title.endswith("(NaN or infinite gradients 6 → 0)")
    assert action.diagnostics is not None
    (fixed,) = action.diagnostics
    assert (fixed.code, fixed.range) == ("JX405", diagnostics[0].range)
    new_texts = [edit.new_text for edit in edits(action, uri, version=7)]
    assert "safe = jnp.where(x > 0, x, 1.0)\n    " in new_texts


async def test_gradient_that_there_is_not_says_why(vscode: Editor, project: Path) -> None:
    uri = (project / "gradient.py").as_uri()
    vscode.open(uri, ATTENTION)
    refused = await vscode.execute("jaxsight.show", uri, "attention", "lax", "grad")
    assert "tracing grad(attention) failed" in refused["text"]


async def test_cells_of_a_notebook_are_one_program(vscode: Editor, project: Path) -> None:
    texts = {
        "one": "%matplotlib inline\nimport jax.numpy as jnp",
        "two": 'def f(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    '
        "y = jnp.sin(x)\n    return y.reshape(3)",
    }
    uris = {name: f"vscode-notebook-cell:{project}/nb.ipynb#{name}" for name in texts}
    notebook = types.NotebookDocument(
        uri=(project / "nb.ipynb").as_uri(),
        notebook_type="jupyter-notebook",
        version=0,
        cells=[types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris.values()],
    )
    cells = [types.TextDocumentItem(uris[name], "python", 1, text) for name, text in texts.items()]
    vscode.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, cells))
    assert "y: f32[8]" in await vscode.hover_text(uris["two"], 5, 4)
    assert (await vscode.hover(uris["two"], 5, 4)).range == span(5, 4, 5)
    (diagnostic,) = await vscode.diagnostics_of(uris["two"])
    assert diagnostic.range.start.line == 6
    assert "reshape" in diagnostic.message


async def test_cancelled_hover_leaves_the_tracer_to_the_next(vscode: Editor, project: Path) -> None:
    uri = (project / "loop.py").as_uri()
    vscode.open(
        uri,
        'def forever(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n'
        "    while True:\n        x + 1\n\n\n"
        'def sane(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    return x\n',
    )
    hover = {
        "id": 4711,
        "method": types.TEXT_DOCUMENT_HOVER,
        "params": {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 6}},
    }
    answer = vscode.send_recorded(hover)
    await vscode.settled()
    vscode.cancel_request(types.CancelParams(id=4711))
    vscode.text_document_did_close(types.DidCloseTextDocumentParams(on(uri)))
    with pytest.raises(JsonRpcException, match="cancel"):
        await answer_to(answer)
    uri = (project / "sane.py").as_uri()
    vscode.open(uri, ATTENTION)
    assert "-> f32[4,128,8,64]" in await vscode.hover_text(uri, 4, 6)


async def test_what_user_code_prints_is_logged_with_its_file(vscode: Editor, project: Path) -> None:
    path = project / "talk.py"
    uri = path.as_uri()
    vscode.open(
        uri,
        'def talk(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n'
        '    print("hello from the trace")\n    return x\n',
    )
    await vscode.hover(uri, 0, 6)

    def printed() -> list[str]:
        logs: list[Any] = [p for m, p in vscode.received if m == types.WINDOW_LOG_MESSAGE]
        return [log.message for log in logs if "hello from the trace" in log.message]

    await vscode.until(lambda: bool(printed()))
    assert printed()[0].startswith(str(path))
