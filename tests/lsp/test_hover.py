"""Hovers through the protocol: positions, markup, faults, cancellation."""

from __future__ import annotations

import asyncio

import pytest

from tests.lsp.client import Client, ResponseError, at, on, recorded, span
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"


@pytest.mark.parametrize(
    ("name", "before"), [("vscode_139", 2), ("neovim_0.12.4", 4), ("emacs_30.1", 1)]
)
async def test_columns_are_counted_as_the_client_counts_them(
    name: str, before: int, client: Client
) -> None:
    await client.initialize(recorded(name)["initialize"])
    client.open(URI, "x = '😋', word\n")
    start = len("x = '") + before + len("', ")
    hover = await client.request("textDocument/hover", on(URI, 0, start + 1))
    assert "word" in hover["contents"]["value"]
    assert hover["range"] == span(0, start, start + 4)


async def test_markdown_goes_to_clients_that_show_it(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word\n")
    hover = await client.request("textDocument/hover", on(URI, 0, 0))
    value = "**word** is `f32[8]`\n\n*jaxsight*"
    assert hover["contents"] == {"kind": "markdown", "value": value}


async def test_plain_text_goes_to_clients_that_show_no_markdown(client: Client) -> None:
    await client.initialize(recorded("emacs_30.1")["initialize"])
    client.open(URI, "word\n")
    hover = await client.request("textDocument/hover", on(URI, 0, 0))
    value = "word is f32[8]\n\njaxsight"
    assert hover["contents"] == {"kind": "plaintext", "value": value}


async def test_edits_are_seen_by_the_next_hover(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "\u2028😋 word\nnext\n")
    client.edit(
        URI,
        2,
        {"range": span(0, 4, 8), "text": "other\nline"},
        {"range": {"start": at(1, 4), "end": at(2, 0)}, "text": " and "},
    )
    hover = await client.request("textDocument/hover", on(URI, 1, 10))
    assert hover["contents"]["value"].startswith("**next**")
    assert hover["range"] == span(1, 9, 13)


@pytest.mark.parametrize(
    ("uri", "language"),
    [
        ("git:/home/user/project/sample.py?x", "python"),
        ("file:///home/user/project/sample.toml", "toml"),
        ("vscode-notebook-cell:/home/user/nb.ipynb#1", "python"),
    ],
)
async def test_what_is_no_python_file_is_left_alone(
    uri: str, language: str, client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(uri, "word\n", language=language)
    client.edit(uri, 2, {"text": "more\n"})
    assert await client.request("textDocument/hover", on(uri, 0, 0)) is None
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.settled()
    assert session.texts == {}


async def test_unsaved_document_is_served_as_if_it_lay_in_the_first_folder(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open("untitled:Untitled-1", "word\n")
    hover = await client.request("textDocument/hover", on("untitled:Untitled-1", 0, 0))
    assert hover is not None
    assert list(session.texts) == ["/home/user/project/untitled:Untitled-1"]


async def test_cancelled_request_stops_the_engines_work(
    client: Client, session: FakeSession
) -> None:
    session.slow = asyncio.Event()
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word\n")
    answer = client.begin("textDocument/hover", on(URI, 0, 0), 77)
    await client.settled()
    client.notify("$/cancelRequest", {"id": 77})
    with pytest.raises(ResponseError) as error:
        await answer
    assert error.value.code == -32800
    assert session.cancelled == [PATH]


async def test_waiting_hover_does_not_hold_up_others(client: Client, session: FakeSession) -> None:
    session.slow = asyncio.Event()
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word = 1\n")
    hover = client.begin("textDocument/hover", on(URI, 0, 0))
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": URI}})
    assert lenses == []
    assert not hover.done()
    session.slow.set()
    assert (await hover)["range"] == span(0, 0, 4)


async def test_document_closed_meanwhile_is_answered_with_nothing(
    client: Client, session: FakeSession
) -> None:
    session.slow = asyncio.Event()
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word\n")
    hover = client.begin("textDocument/hover", on(URI, 0, 0))
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    await client.settled()
    session.slow.set()
    assert await hover is None


async def test_fault_of_the_engine_is_logged_and_pops_nothing_up(
    client: Client, session: FakeSession
) -> None:
    session.fault = RuntimeError("boom")
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word\n")
    assert await client.request("textDocument/hover", on(URI, 0, 0)) is None
    (logged,) = await client.heard("window/logMessage")
    assert logged["message"].startswith("textDocument/hover failed")
    session.fault = None
    assert await client.request("textDocument/hover", on(URI, 0, 0)) is not None
    assert "window/showMessage" not in [method for method, _ in client.notifications]


async def test_malformed_request_is_answered_with_an_error(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    with pytest.raises(ResponseError) as error:
        await client.request("textDocument/hover", {"position": "here"})
    assert error.value.code == -32602
    assert await client.request("textDocument/hover", on(URI, 0, 0)) is None


async def test_malformed_notification_is_passed_over(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.notify("textDocument/didOpen", {"textDocument": 1})
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": URI, "version": 1}, "contentChanges": [{"text": ""}]},
    )
    client.notify("unknown/notification", {"x": 1})
    await client.settled()
    assert "window/showMessage" not in [method for method, _ in client.notifications]
