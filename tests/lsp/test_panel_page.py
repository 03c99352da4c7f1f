"""The panel in a browser: what its page shows as the editor's cursor moves, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from jaxsight.events import Refresh
from jaxsight.features.model import VirtualText
from tests.lsp.browser import Browser
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
    async with page.events() as events:
        assert await page.say(type="ready") == 204
        assert await events.next("following") == {
            "type": "following",
            "following": {"pinned": False, "paused": False},
        }
        assert (await events.next("cursor"))["position"] == at(0, 4)
        shown = await events.shown("f")
        assert shown == await client.request("jaxsight/panel", {"uri": URI, "function": "f"})
        cursor(client, 3)
        assert (await events.next("cursor"))["position"] == at(3, 4)
        assert (await events.shown("g"))["range"] == span(3, 4, 5)


async def test_every_page_of_an_editor_shows_the_same(client: Client) -> None:
    await introduce(client)
    page = await browser(client, URI, "g")
    async with page.events() as one, page.events() as other:
        await page.say(type="ready")
        assert await one.shown("g") == await other.shown("g")


@pytest.mark.parametrize("following", ["pinned", "paused"])
async def test_a_page_stays_where_it_is_told_to(client: Client, following: str) -> None:
    await introduce(client)
    page = await browser(client, PATH, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        await page.say(type="follow", following={"pinned": False, "paused": False, following: True})
        cursor(client, 3)
        await events.next("cursor")
        await page.say(type="sweep", sizes="", figure="temp")
        await events.next("swept")
        assert "g" not in {
            message["shown"]["function"]
            for message in events.read
            if message["type"] == "show" and message["shown"]
        }
        await page.say(type="follow", following={"pinned": False, "paused": False})
        await events.shown("g")


async def test_new_answers_are_shown_at_once(client: Client, session: FakeSession) -> None:
    await introduce(client)
    page = await browser(client, URI, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        client.edit(URI, 2, {"range": span(0, 0, 0), "text": "\n\n"})
        await client.settled()
        session.events.put_nowait(Refresh("/another.py"))
        session.events.put_nowait(Refresh(PATH))
        assert (await events.shown("f"))["range"] == span(2, 4, 5)
    assert "jaxsight/panelRefresh" not in {name for name, _ in client.notifications}


async def test_without_notifications_the_cursor_is_where_the_editor_asks(client: Client) -> None:
    await introduce(client)
    page = await browser(client, URI, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        await client.request("textDocument/hover", on(URI, 3, 4))
        await events.shown("g")
        asked = {"textDocument": {"uri": URI}, "range": span(0, 4, 4), "context": {}}
        await client.request("textDocument/codeAction", {**asked, "context": {"diagnostics": []}})
        await events.shown("f")
        # Hovers are the mouse's from now on; text is edited at the cursor.
        await client.request("textDocument/hover", on(URI, 3, 4))
        client.edit(URI, 2, {"range": span(3, 4, 5), "text": "h"})
        await events.shown("h")
        assert [m["position"] for m in events.read if m["type"] == "cursor"][-2:] == [
            at(0, 4),
            at(3, 4),
        ]


async def test_hovers_stay_the_cursors_after_actions_that_the_user_asked_for(
    client: Client,
) -> None:
    await introduce(client, "helix_25.01.1")
    page = await browser(client, URI, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        context = {"diagnostics": [], "triggerKind": 1}
        asked = {"textDocument": {"uri": URI}, "range": span(0, 4, 4), "context": context}
        await client.request("textDocument/codeAction", asked)
        await client.request("textDocument/hover", on(URI, 3, 4))
        await events.shown("g")


async def test_places_are_shown_in_the_editor(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await introduce(client, window={"showDocument": {"support": True}})
    page = await browser(client)
    place = {"uri": URI, "range": span(3, 4, 5)}
    assert await page.say(type="reveal", places=[place], focus=False) == 204
    assert await client.heard("jaxsight/reveal") == [{"places": [place], "focus": False}]
    elsewhere = {"uri": "file:///etc/passwd", "range": span(0, 0, 1)}
    await page.say(type="reveal", places=[elsewhere, place], focus=True)
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
    await page.say(type="reveal", places=[place], focus=False)
    _, shown = await client.heard("window/showDocument", 2)
    assert shown == {"uri": URI, "takeFocus": False, "selection": span(3, 4, 4)}


async def test_a_page_chooses_and_measures_as_the_editor_does(
    client: Client, session: FakeSession
) -> None:
    client.answers["window/showMessageRequest"] = lambda params: next(
        item for item in params["actions"] if item["title"] == "Measure"
    )
    await introduce(client)
    page = await browser(client, URI, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        await page.say(type="content", kind="jaxpr")
        content = (await events.next("content"))["content"]
        assert content["text"]
        await page.say(type="chooseSet", set="decode")
        await page.say(type="chooseTarget", target="cuda:h100")
        await page.say(type="measure")
        assert (await events.next("measuring"))["measuring"]
        assert not (await events.next("measuring"))["measuring"]
    assert session.measured.asked == [(PATH, "f")]
    assert session.targets == ["cuda:h100"]
    assert session.chosen == {(PATH, "f"): "decode"}


async def test_a_text_that_cannot_be_made_says_why_in_its_tab(
    client: Client, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def show(*_: object) -> VirtualText:
        raise ValueError("no operation\nof this name")

    await introduce(client)
    page = await browser(client, URI, "f")
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("f")
        monkeypatch.setattr(session, "show", show)
        await page.say(type="content", kind="jaxpr")
        content = (await events.next("content"))["content"]
    assert content["text"] == "# cannot be shown: no operation\\nof this name\n"


async def test_a_page_knows_when_its_server_has_ended(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    async with page.events() as events:
        await client.request("shutdown")
        client.notify("exit")
        assert await events.ended()


async def test_nonsense_of_a_page_is_refused(client: Client) -> None:
    await introduce(client)
    page = await browser(client)
    for body in (
        b"",
        b"{",
        b"[" * 100_000,
        b"3",
        b'{"type": "dance"}',
        b'{"type": "reveal", "places": [{"uri": 3}], "focus": true}',
        b'{"type": "reveal", "places": "all", "focus": true}',
        b'{"type": "follow", "following": {"pinned": 1, "paused": 0}}',
    ):
        assert (await page.ask("POST", f"{page.path}messages", body)).status == 400
    assert await page.say(type="ready") == 204


async def test_the_cursor_has_a_document_and_a_position(client: Client) -> None:
    await introduce(client)
    for params in ({}, {"uri": URI}, on(URI, -1, 0), None):
        client.notify("jaxsight/cursor", params)
    page = await browser(client)
    cursor(client, 3)
    async with page.events() as events:
        await page.say(type="ready")
        await events.shown("g")


async def test_a_page_that_does_not_read_is_given_up_and_others_go_on(client: Client) -> None:
    await introduce(client)
    long = f"{URI}/{'x' * 100_000}.py"
    client.open(long, TEXT)
    page = await browser(client)
    async with page.events() as slow:
        for number in range(300):
            cursor(client, number, long)
        await client.settled()
        async with page.events() as events:
            await page.say(type="ready")
            cursor(client, 3)
            await events.shown("g")
        with pytest.raises(AssertionError, match="ended the stream"):
            await slow.shown("none")
        assert len(slow.read) < 300
