"""The commands of lenses about proposed inputs: to show, to hide and to write them."""

from __future__ import annotations

from tests.lsp.client import Client, recorded, span
from tests.lsp.fake_session import FakeSession
from tests.lsp.test_requests import PATH, URI, command

SETTINGS = "/home/user/project/pyproject.toml"


async def run(client: Client, name: str, *arguments: str) -> None:
    await client.request("workspace/executeCommand", command(name, *arguments))


async def test_proposed_inputs_are_shown_and_hidden(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    await run(client, "jaxsight.showProposed", PATH, "f")
    await run(client, "jaxsight.showProposed", URI, "f", "hide")
    assert session.shown == [(PATH, "f", False), (PATH, "f", True)]
    await run(client, "jaxsight.showProposed", PATH, "hard")
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "no proposed inputs of hard can be traced"


async def test_kept_inputs_are_edited_by_the_client(client: Client) -> None:
    client.answers["workspace/applyEdit"] = lambda params: {"applied": True}
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    await run(client, "jaxsight.keepProposed", PATH, "f")
    await run(client, "jaxsight.keepProposed", PATH, SETTINGS)
    here, elsewhere = (params for name, params in client.requests if name == "workspace/applyEdit")
    (change,) = here["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert change["edits"] == [{"range": span(0, 0, 0), "newText": "# f\n"}]
    created, change = elsewhere["edit"]["documentChanges"]
    assert created["uri"] == change["textDocument"]["uri"] == f"file://{SETTINGS}"
    assert created["options"] == {"ignoreIfExists": True}
