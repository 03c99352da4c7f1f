"""Diagnostics, pulled and pushed."""

from __future__ import annotations

import pytest

from jaxsight.events import Refresh
from tests.lsp.client import Client, ResponseError, recorded, span
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"
DOCUMENT = {"textDocument": {"uri": URI}}


async def test_finding_is_told_with_its_page_and_its_places(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "'😋'; bad\ngood\n")
    report = await client.request("textDocument/diagnostic", DOCUMENT)
    assert report["items"] == [
        {
            "range": span(0, 6, 9),
            "message": "bad",
            "severity": 2,
            "code": "JX1",
            "codeDescription": {"href": "https://example.org/JX1"},
            "source": "jaxsight",
            "relatedInformation": [
                {"location": {"uri": URI, "range": span(1, 0, 4)}, "message": "see here"}
            ],
        }
    ]


async def test_a_hover_has_the_help_and_notes_that_lists_of_problems_do_not(
    client: Client,
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "fine bad\n")
    report = await client.request("textDocument/diagnostic", DOCUMENT)
    assert [item["message"] for item in report["items"]] == ["bad"]
    at_bad = {**DOCUMENT, "position": {"line": 0, "character": 6}}
    hover = await client.request("textDocument/hover", at_bad)
    assert hover["contents"]["value"].split("\n\n") == [
        "**bad** is `f32[8]`",
        "**JX1** bad",
        "help: make it `good`",
        "note: it is not good",
        "note: it was never good",
        "*jaxsight*",
    ]
    at_fine = {**DOCUMENT, "position": {"line": 0, "character": 1}}
    hover = await client.request("textDocument/hover", at_fine)
    assert "JX1" not in hover["contents"]["value"]


async def test_a_hover_explains_no_finding_of_an_older_text(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "bad\n")
    await client.request("textDocument/diagnostic", DOCUMENT)
    client.edit(URI, 2, {"text": "good\n"})
    at_word = {**DOCUMENT, "position": {"line": 0, "character": 1}}
    hover = await client.request("textDocument/hover", at_word)
    assert "JX1" not in hover["contents"]["value"]


async def test_what_the_client_has_is_not_sent_again(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "bad\n")
    first = await client.request("textDocument/diagnostic", DOCUMENT)
    params = {**DOCUMENT, "previousResultId": first["resultId"]}
    same = await client.request("textDocument/diagnostic", params)
    assert same == {"kind": "unchanged", "resultId": first["resultId"]}
    client.edit(URI, 2, {"text": "bad bad\n"})
    changed = await client.request("textDocument/diagnostic", params)
    assert changed["kind"] == "full"
    assert len(changed["items"]) == 2


async def test_clients_that_pull_are_pushed_nothing(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "bad\n")
    session.events.put_nowait(Refresh(PATH))
    await client.heard("workspace/diagnostic/refresh")
    client.notify("textDocument/didClose", DOCUMENT)
    await client.settled()
    assert "textDocument/publishDiagnostics" not in [method for method, _ in client.notifications]


async def test_fault_is_no_file_without_findings(client: Client, session: FakeSession) -> None:
    session.fault = RuntimeError("boom")
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "bad\n")
    with pytest.raises(ResponseError) as error:
        await client.request("textDocument/diagnostic", DOCUMENT)
    assert error.value.code == -32802


async def test_pushed_diagnostics_follow_the_text(client: Client) -> None:
    await client.initialize(recorded("neovim_0.11.4")["initialize"])
    client.open(URI, "bad\n", version=1)
    await client.heard("textDocument/publishDiagnostics")
    client.edit(URI, 2, {"range": span(0, 0, 0), "text": "'😋' "})
    _, last = await client.heard("textDocument/publishDiagnostics", 2)
    assert (last["uri"], last["version"]) == (URI, 2)
    assert last["diagnostics"][0]["range"] == span(0, 7, 10)


async def test_pushed_diagnostics_of_a_closed_document_are_taken_back(client: Client) -> None:
    await client.initialize(recorded("neovim_0.11.4")["initialize"])
    client.open(URI, "bad\n")
    await client.heard("textDocument/publishDiagnostics")
    client.notify("textDocument/didClose", DOCUMENT)
    (*_, last) = await client.heard("textDocument/publishDiagnostics", 2)
    assert last == {"uri": URI, "diagnostics": []}


async def test_clients_get_no_more_than_they_understand(client: Client) -> None:
    await client.initialize(recorded("emacs_30.1")["initialize"])
    client.open(URI, "bad good\n")
    (published,) = await client.heard("textDocument/publishDiagnostics")
    (diagnostic,) = published["diagnostics"]
    assert "relatedInformation" not in diagnostic
    assert "codeDescription" not in diagnostic
