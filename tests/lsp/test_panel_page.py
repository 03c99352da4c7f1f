"""The panel in a browser: what its page shows as the editor's cursor moves, and what it asks for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jaxsight.events import Refresh
from jaxsight.features.model import VirtualText
from tests.lsp.browser import PATIENCE, Browser
from tests.lsp.client import Client, at, on, recorded, span
from tests.lsp.fake_session import FakeSession
from tests.lsp.test_requests import PATH, URI, command

TEXT = "def f(): pass\n\n\ndef g(): pass\n"


async def introduce(client: Client, name: str = "vscode_139", **capabilities: Any) -> None:
    params = recorded(name)["initialize"]
    params["capabilities"] |= {"experimental": {"jaxsight": name == "vscode_139"}, **capabilities}
    await client.initialize(params)
    client.open(URI, TEXT)


async def open_panel(client: Client, *arguments: str) -> dict[str, Any]:
    opened: dict[str, Any] = await client.request(
        "workspace/executeCommand", command("jaxsight.openPanel", *arguments)
    )
    return opened


async def browser(client: Client, *arguments: str) -> Browser:
    return await Browser.opening((await open_panel(client, *arguments))["url"])


def cursor(client: Client, line: int, uri: str = URI) -> None:
    client.notify("jaxsight/cursor", on(uri, line, 4))


async def test_a_client_that_shows_documents_is_asked_to_open_the_page_outside(
    client: Client,
) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await introduce(client, window={"showDocument": {"support": True}})
    opened = await open_panel(client)
    (asked,) = await client.heard("window/showDocument")
    assert asked == {"uri": opened["url"], "external": True, "takeFocus": True}
    assert opened["opened"]


@pytest.mark.parametrize("name", ["helix_25.01.1", "jupyterlab_lsp", "kate", "vim9_ale", "zed"])
async def test_people_open_the_page_themselves_where_the_client_cannot(
    client: Client, name: str
) -> None:
    await introduce(client, name)
    opened = await open_panel(client)
    assert not opened["opened"]
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == f"Open the panel in a browser: {opened['url']}"
    page = await (await Browser.opening(opened["url"])).get()
    assert page.status == 200
    assert b"<!DOCTYPE html>" in page.body[:100]


async def test_a_page_follows_the_cursor(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    cursor(client, 0)
    await client.settled()
    async with page.socket() as events:
        assert await events.next("jaxsight/cursor") == on(URI, 0, 4)
        cursor(client, 3)
        assert await events.cursor() == at(3, 4)
        cursor(client, 1, "file:///not/open.py")
        cursor(client, 0)
        assert await events.cursor() == at(0, 4)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("jaxsight/panel", {"uri": URI, "function": "f"}),
        ("jaxsight/panel", {"uri": URI, "position": at(3, 4)}),
        ("jaxsight/panel", {"uri": "file:///not/open.py", "function": "f"}),
        ("jaxsight/sweep", {"uri": URI, "function": "f", "sizes": "", "figure": "temp"}),
    ],
)
async def test_a_page_is_answered_as_the_editor_is(
    client: Client, method: str, params: dict[str, Any]
) -> None:
    await introduce(client)
    page = await browser(client)
    assert await page.request(method, params) == await client.request(method, params)


async def test_a_page_begins_with_the_function_that_it_is_opened_for(client: Client) -> None:
    await introduce(client)
    assert (await browser(client, PATH, "g")).asked == {"uri": [URI], "function": ["g"]}
    assert (await browser(client, "/another.py", "g")).asked == {}
    assert (await browser(client)).asked == {}


async def test_every_page_of_an_editor_is_notified_of_new_answers(
    client: Client, session: FakeSession
) -> None:
    await introduce(client)
    page = await browser(client)
    async with page.socket() as one, page.socket() as other:
        await page.request("jaxsight/panel", {"uri": URI, "function": "f"})
        session.events.put_nowait(Refresh("/another.py"))
        session.events.put_nowait(Refresh(PATH))
        for events in (one, other):
            assert await events.next("jaxsight/panelRefresh") == {"uri": URI}
    assert "jaxsight/panelRefresh" not in {name for name, _ in client.notifications}


class Endless:
    """An answer that never comes, and what happens to the wait for it."""

    def __init__(self) -> None:
        self.started, self.cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, *_: object) -> None:
        self.started.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def test_what_a_page_gives_up_is_cancelled(
    client: Client, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Endless()
    await introduce(client)
    page = await browser(client)
    monkeypatch.setattr(session, "panel", panel)
    asking = asyncio.create_task(page.request("jaxsight/panel", {"uri": URI, "function": "f"}))
    await asyncio.wait_for(panel.started.wait(), PATIENCE)
    asking.cancel()
    await asyncio.wait_for(panel.cancelled.wait(), PATIENCE)


async def test_a_page_cancels_one_request_and_goes_on(
    client: Client, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Endless()
    await introduce(client)
    page = await browser(client)
    params = {"uri": URI, "function": "f"}
    async with page.socket() as socket:
        monkeypatch.setattr(session, "panel", panel)
        request = {"id": 7, "method": "jaxsight/panel", "params": params}
        await socket.connection.send(json.dumps(request))
        await asyncio.wait_for(panel.started.wait(), PATIENCE)
        await socket.connection.send(json.dumps({"method": "$/cancelRequest", "params": {"id": 8}}))
        await socket.connection.send(json.dumps({"method": "$/cancelRequest", "params": {"id": 7}}))
        await asyncio.wait_for(panel.cancelled.wait(), PATIENCE)
        monkeypatch.undo()
        assert (await socket.ask("jaxsight/panel", params))["result"]


async def test_without_notifications_the_cursor_is_where_the_editor_asks(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    async with page.socket() as events:
        await client.request("textDocument/hover", on(URI, 3, 4))
        assert await events.cursor() == at(3, 4)
        asked = {"textDocument": {"uri": URI}, "range": span(0, 4, 4), "context": {}}
        await client.request("textDocument/codeAction", {**asked, "context": {"diagnostics": []}})
        assert await events.cursor() == at(0, 4)
        # Hovers are the mouse's from now on; text is edited at the cursor.
        await client.request("textDocument/hover", on(URI, 2, 0))
        client.edit(URI, 2, {"range": span(3, 4, 5), "text": "h"})
        assert await events.cursor() == at(3, 4)


async def test_hovers_stay_the_cursors_after_actions_that_the_user_asked_for(
    client: Client,
) -> None:
    await introduce(client, "helix_25.01.1")
    page = await browser(client)
    async with page.socket() as events:
        context = {"diagnostics": [], "triggerKind": 1}
        asked = {"textDocument": {"uri": URI}, "range": span(0, 4, 4), "context": context}
        await client.request("textDocument/codeAction", asked)
        assert await events.cursor() == at(0, 4)
        await client.request("textDocument/hover", on(URI, 3, 4))
        assert await events.cursor() == at(3, 4)


async def test_places_are_shown_in_the_editor(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await introduce(client, window={"showDocument": {"support": True}})
    page = await browser(client)
    place = {"uri": URI, "range": span(3, 4, 5)}
    await page.request("jaxsight/reveal", {"places": [place], "focus": False})
    assert await client.heard("jaxsight/reveal") == [{"places": [place], "focus": False}]
    elsewhere = {"uri": "file:///etc/passwd", "range": span(0, 0, 1)}
    await page.request("jaxsight/reveal", {"places": [elsewhere, place], "focus": True})
    _, shown = await client.heard("window/showDocument", 2)
    assert shown == {"uri": URI, "takeFocus": True, "selection": span(3, 4, 4)}
    assert (await client.heard("jaxsight/reveal", 2))[1] == {"places": [place], "focus": True}


async def test_an_editor_that_highlights_nothing_goes_to_the_first_place(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await introduce(
        client, window={"showDocument": {"support": True}}, experimental={"jaxsight": False}
    )
    page = await browser(client)
    place = {"uri": URI, "range": span(3, 4, 5)}
    await page.request("jaxsight/reveal", {"places": [place], "focus": False})
    _, shown = await client.heard("window/showDocument", 2)
    assert shown == {"uri": URI, "takeFocus": False, "selection": span(3, 4, 4)}


@pytest.mark.parametrize("name", ["vscode_139", "helix_25.01.1"])
async def test_a_page_chooses_and_measures_as_the_editor_does(
    client: Client, session: FakeSession, name: str
) -> None:
    client.answers["window/showMessageRequest"] = lambda params: next(
        item for item in params["actions"] if item["title"] == "Measure"
    )
    await introduce(client, name)
    page = await browser(client)
    await page.execute("jaxsight.chooseSet", URI, "f", "decode")
    await page.execute("jaxsight.chooseTarget", "cuda:h100", URI)
    assert (await page.execute("jaxsight.measure", URI, "f", "wait"))["headline"]
    assert session.measured.asked == [(PATH, "f")]
    assert session.targets == ["cuda:h100"]
    assert session.chosen == {(PATH, "f"): "decode"}


async def test_a_page_gets_texts(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    shown = await page.request("jaxsight/panel", {"uri": URI, "function": "f"})
    asked = {"uri": shown["documents"]["jaxpr"]}
    content = await page.request("jaxsight/textDocumentContent", asked)
    assert content["text"]
    assert content == await client.request("jaxsight/textDocumentContent", asked)


async def test_a_request_that_fails_says_why(
    client: Client, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def show(*_: object) -> VirtualText:
        raise ValueError("no operation\nof this name")

    await introduce(client)
    page = await browser(client)
    shown = await page.request("jaxsight/panel", {"uri": URI, "function": "f"})
    monkeypatch.setattr(session, "show", show)
    params = {"uri": shown["documents"]["jaxpr"]}
    reason = await page.refusal("jaxsight/textDocumentContent", params)
    assert reason == "no operation\\nof this name"


async def test_a_page_knows_when_its_server_has_ended(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    async with page.socket() as events:
        await client.request("shutdown")
        client.notify("exit")
        assert await events.rest() == []


async def test_a_page_that_sends_no_request_is_disconnected(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    for text in (
        "",
        "{",
        "[" * 100_000,
        "3",
        '{"method": "jaxsight/panel"}',
        '{"id": 1, "method": "jaxsight/panel"}',
        '{"id": [], "method": "jaxsight/panel", "params": {}}',
        '{"id": 1, "method": [], "params": {}}',
    ):
        async with page.socket() as socket:
            await socket.connection.send(text)
            await socket.rest()
            assert socket.connection.close_code == 1008, text
    async with page.socket() as socket:
        await socket.connection.send("x" * 2**21)
        await socket.rest()
        assert socket.connection.close_code == 1009
    assert await page.request("jaxsight/panel", {"uri": URI, "function": "f"})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("jaxsight/panel", []),
        ("jaxsight/panel", {"uri": 3, "function": "f"}),
        ("jaxsight/reveal", {"places": [{"uri": 3}], "focus": True}),
        ("jaxsight/reveal", {"places": "all", "focus": True}),
    ],
)
async def test_a_request_with_other_parameters_is_refused(
    client: Client, method: str, params: object
) -> None:
    await introduce(client)
    page = await browser(client)
    assert await page.refusal(method, params)


async def test_a_page_can_do_what_a_user_can_in_the_panel_and_no_more(
    client: Client, session: FakeSession
) -> None:
    await introduce(client)
    page = await browser(client)
    for method, params in (
        ("shutdown", None),
        ("textDocument/hover", on(URI, 0, 4)),
        ("workspace/executeCommand", {"command": "jaxsight.restart", "arguments": []}),
        ("workspace/executeCommand", {"command": "jaxsight.trust", "arguments": []}),
        ("workspace/executeCommand", {"command": "jaxsight.chooseSet", "arguments": [URI, 3]}),
        ("workspace/executeCommand", {"command": ["jaxsight.chooseSet"], "arguments": []}),
    ):
        assert await page.refusal(method, params), method
    assert session.chosen == {}


async def test_the_cursor_has_a_document_and_a_position(client: Client) -> None:
    await introduce(client)
    for params in ({}, {"uri": URI}, on(URI, -1, 0), None):
        client.notify("jaxsight/cursor", params)
    page = await browser(client)
    cursor(client, 3)
    async with page.socket() as events:
        assert await events.cursor() == at(3, 4)


async def test_a_page_that_does_not_read_is_given_up_and_others_go_on(client: Client) -> None:
    await introduce(client)
    long = f"{URI}/{'x' * 100_000}.py"
    client.open(long, TEXT)
    page = await browser(client)
    async with page.socket(reads=False) as slow:
        for number in range(300):
            cursor(client, number, long)
        await client.settled()
        async with page.socket() as events:
            cursor(client, 3)
            while await events.cursor() != at(3, 4):
                pass
        assert len(await slow.rest()) < 300
