"""Notebooks: cells are one text for the engine, and its answers come back to the cells."""

from __future__ import annotations

from typing import Any

from tests.lsp.client import Client, at, on, recorded, span
from tests.lsp.fake_session import FakeSession

NOTEBOOK = "file:///home/user/project/nb.ipynb"
PATH = "/home/user/project/nb.ipynb"


def cell_uri(name: str) -> str:
    return f"vscode-notebook-cell:/home/user/project/nb.ipynb#{name}%3D"


def item(name: str, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": cell_uri(name), "languageId": language, "version": 1, "text": text}


def document(name: str) -> dict[str, Any]:
    return {"textDocument": {"uri": cell_uri(name)}}


def open_notebook(client: Client, **texts: str) -> None:
    """Cells by name; those whose name starts with `prose` are Markdown and not synchronized."""
    cells = [
        {"kind": 1 if name.startswith("prose") else 2, "document": cell_uri(name)} for name in texts
    ]
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": NOTEBOOK,
                "notebookType": "jupyter-notebook",
                "version": 0,
                "cells": cells,
            },
            "cellTextDocuments": [
                item(name, text) for name, text in texts.items() if not name.startswith("prose")
            ],
        },
    )


def change_notebook(client: Client, **cells: Any) -> None:
    params = {"notebookDocument": {"uri": NOTEBOOK, "version": 1}, "change": {"cells": cells}}
    client.notify("notebookDocument/didChange", params)


async def test_cells_are_one_text_without_magics(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="%time\nx = 1", prose="*hi*", b="", c="!ls\ny = 2\n")
    await client.settled()
    assert session.texts == {PATH: "\nx = 1\n\n\ny = 2\n\n"}


async def test_hover_knows_its_cell(client: Client) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1\n", prose="*hi*", b="'😋'; word")
    hover = await client.request("textDocument/hover", on(cell_uri("b"), 0, 8))
    assert hover["contents"]["value"].startswith("**word**")
    assert hover["range"] == span(0, 6, 10)


async def test_hints_and_lenses_are_those_of_the_cell(client: Client) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1\ndef f(): pass", b="y = 2")
    params = {**document("b"), "range": {"start": at(0, 0), "end": at(1, 0)}}
    (hint,) = await client.request("textDocument/inlayHint", params)
    assert (hint["label"], hint["position"]) == (": y", at(0, 1))
    assert await client.request("textDocument/codeLens", document("b")) == []
    (lens,) = await client.request("textDocument/codeLens", document("a"))
    assert lens["range"] == span(1, 4, 5)
    assert lens["command"]["arguments"] == [PATH, "f"]


async def test_diagnostics_of_each_cell_lead_to_others(client: Client) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="good\n", b="x = bad")
    assert (await client.request("textDocument/diagnostic", document("a")))["items"] == []
    report = await client.request("textDocument/diagnostic", document("b"))
    (diagnostic,) = report["items"]
    assert diagnostic["range"] == span(0, 4, 7)
    (related,) = diagnostic["relatedInformation"]
    assert related["location"] == {"uri": cell_uri("a"), "range": span(0, 0, 4)}


async def test_actions_and_completions_edit_the_cell(client: Client) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1\n", b="y = 2\nf")
    params = {**document("b"), "range": span(1, 0, 0), "context": {"diagnostics": []}}
    (action,) = await client.request("textDocument/codeAction", params)
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == cell_uri("b")
    assert change["edits"][0]["range"] == span(1, 0, 0)
    completions = await client.request("textDocument/completion", on(cell_uri("b"), 1, 1))
    assert completions["items"][0]["textEdit"]["range"] == span(1, 0, 1)


async def test_edits_in_a_cell_reach_the_engine(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1", b="y = 2")
    change = {"range": span(0, 0, 1), "text": "'😋'\nz"}
    edited = {"document": {"uri": cell_uri("a"), "version": 2}, "changes": [change]}
    change_notebook(client, textContent=[edited])
    hover = await client.request("textDocument/hover", on(cell_uri("b"), 0, 0))
    assert session.texts[PATH] == "'😋'\nz = 1\ny = 2\n"
    assert hover["range"] == span(0, 0, 1)


async def test_cells_come_go_and_move(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1", b="y = 2")
    array = {"start": 1, "deleteCount": 1, "cells": [{"kind": 2, "document": cell_uri("c")}]}
    change_notebook(
        client,
        structure={
            "array": array,
            "didOpen": [item("c", "z = 3")],
            "didClose": [{"uri": cell_uri("b")}],
        },
    )
    assert await client.request("textDocument/hover", on(cell_uri("b"), 0, 0)) is None
    assert session.texts[PATH] == "x = 1\nz = 3\n"
    moved = [{"kind": 2, "document": cell_uri(name)} for name in ("c", "a")]
    change_notebook(client, structure={"array": {"start": 0, "deleteCount": 2, "cells": moved}})
    await client.settled()
    assert session.texts[PATH] == "z = 3\nx = 1\n"


async def test_cell_that_becomes_prose_is_no_code(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1", b="y = 2")
    array = {"start": 0, "deleteCount": 1, "cells": [{"kind": 1, "document": cell_uri("a")}]}
    change_notebook(client, structure={"array": array, "didClose": [{"uri": cell_uri("a")}]})
    await client.settled()
    assert session.texts[PATH] == "y = 2\n"


async def test_saved_notebook_is_a_saved_file(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1")
    client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": NOTEBOOK}})
    await client.settled()
    assert session.saved_paths == [PATH]


async def test_closed_notebook_is_forgotten(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139_notebook")["initialize"])
    open_notebook(client, a="x = 1")
    params = {
        "notebookDocument": {"uri": NOTEBOOK},
        "cellTextDocuments": [{"uri": cell_uri("a")}],
    }
    client.notify("notebookDocument/didClose", params)
    assert await client.request("textDocument/hover", on(cell_uri("a"), 0, 0)) is None
    assert session.texts == {}


async def test_jupyters_joined_cells_are_a_document(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("jupyterlab_lsp")["initialize"])
    uri = "file:///home/user/project/.virtual_documents/nb.ipynb"
    client.open(uri, "word\n")
    assert await client.request("textDocument/hover", on(uri, 0, 0)) is not None
    assert list(session.texts) == [PATH]
