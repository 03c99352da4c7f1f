"""Inlay hints: where they stand, their tooltips, and asking the client to ask again."""

from __future__ import annotations

from jaxsight.events import Refresh
from tests.lsp.client import Client, at, recorded, span
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"
WHOLE = {"textDocument": {"uri": URI}, "range": {"start": at(0, 0), "end": at(9, 0)}}


async def test_hint_stands_after_its_name(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "'😋'; word = 1\n")
    (hint,) = await client.request("textDocument/inlayHint", WHOLE)
    assert hint["position"] == at(0, 10)
    assert hint["label"] == ": word"
    assert hint["paddingLeft"] is False


async def test_only_hints_of_the_range_are_given(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "a = 1\nb = 2\nc = 3\n")
    params = {"textDocument": {"uri": URI}, "range": span(1, 0, 5)}
    (hint,) = await client.request("textDocument/inlayHint", params)
    assert hint["label"] == ": b"


async def test_tooltip_comes_when_it_is_asked_for(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word = 1\n")
    (hint,) = await client.request("textDocument/inlayHint", WHOLE)
    assert "tooltip" not in hint
    resolved = await client.request("inlayHint/resolve", hint)
    assert resolved["tooltip"] == {"kind": "markdown", "value": "tooltip of `word`"}


async def test_tooltip_of_a_hint_that_is_gone_stays_empty(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word = 1\n")
    (hint,) = await client.request("textDocument/inlayHint", WHOLE)
    client.edit(URI, 2, {"text": "\n\n\n"})
    assert "tooltip" not in await client.request("inlayHint/resolve", hint)


async def test_tooltip_comes_at_once_for_clients_that_do_not_ask_for_it(client: Client) -> None:
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    client.open(URI, "word = 1\n")
    (hint,) = await client.request("textDocument/inlayHint", WHOLE)
    assert hint["tooltip"]["value"] == "tooltip of `word`"


async def test_hint_without_our_data_resolves_to_itself(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    hint = {"position": at(0, 0), "label": "x"}
    assert await client.request("inlayHint/resolve", hint) == hint


async def test_new_answers_make_the_client_ask_again(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    session.events.put_nowait(Refresh(PATH))
    await client.heard("workspace/inlayHint/refresh")
    await client.heard("workspace/codeLens/refresh")
    await client.heard("workspace/diagnostic/refresh")


async def test_bursts_of_new_answers_become_one_more_question(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    for _ in range(50):
        session.events.put_nowait(Refresh(PATH))
    await client.heard("workspace/inlayHint/refresh", 2)
    await client.settled()
    assert [method for method, _ in client.requests].count("workspace/inlayHint/refresh") == 2


async def test_clients_that_cannot_refresh_are_not_asked_to(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    client.open(URI, "bad\n")
    await client.heard("textDocument/publishDiagnostics")
    session.events.put_nowait(Refresh(PATH))
    await client.heard("textDocument/publishDiagnostics", 2)
    assert not [method for method, _ in client.requests if "refresh" in method]
