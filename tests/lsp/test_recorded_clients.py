"""What real clients say first, replayed: each gets the encoding and the features that it can use,
and no errors.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.lsp.client import CLIENTS, Client, ResponseError, recorded
from tests.lsp.fake_session import FakeSession

ALL = sorted(path.stem for path in CLIENTS.glob("*.json"))
CANCELLED = -32800

ENCODINGS = {
    "emacs_30.1": "utf-32",
    "helix_25.01.1": "utf-8",
    "jupyterlab_lsp": "utf-16",
    "neovim_0.10.4": "utf-16",
    "neovim_0.11.4": "utf-8",
    "neovim_0.12.4": "utf-8",
    "vim9_ale": "utf-16",
    "vscode_100": "utf-16",
    "vscode_139": "utf-16",
    "vscode_139_notebook": "utf-16",
    "vscode_93": "utf-16",
}
PULLS = {"neovim_0.12.4", "vscode_100", "vscode_139", "vscode_139_notebook", "vscode_93"}
"""Neovim 0.10 and 0.11 can pull, but cannot be told to pull again."""
OPENS_CONTENT = {"vscode_100", "vscode_139", "vscode_139_notebook", "vscode_93"}


@pytest.mark.parametrize("name", ALL)
async def test_client_is_served_in_the_units_it_prefers(name: str, client: Client) -> None:
    result = await client.initialize(recorded(name)["initialize"])
    assert result["capabilities"]["positionEncoding"] == ENCODINGS[name]
    assert result["serverInfo"]["name"] == "jaxsight"


@pytest.mark.parametrize("name", ALL)
async def test_diagnostics_are_pulled_only_by_clients_that_can_be_told_to_pull_again(
    name: str, client: Client
) -> None:
    result = await client.initialize(recorded(name)["initialize"])
    assert ("diagnosticProvider" in result["capabilities"]) == (name in PULLS)


@pytest.mark.parametrize("name", ALL)
async def test_made_documents_are_offered_to_clients_that_open_them(
    name: str, client: Client
) -> None:
    result = await client.initialize(recorded(name)["initialize"])
    offered = result["capabilities"]["workspace"].get("textDocumentContent")
    kinds = ("jaxpr", "stablehlo", "hlo", "kernels", "view", "lax", "pretty")
    schemes = [f"jaxsight-{kind}" for kind in kinds]
    assert offered == ({"schemes": schemes} if name in OPENS_CONTENT else None)


@pytest.mark.parametrize("name", ALL)
async def test_first_messages_of_a_real_session_are_answered_without_errors(
    name: str, client: Client, session: FakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    session_recording = recorded(name)
    await client.initialize(session_recording["initialize"])
    answers = []
    for message in session_recording["messages"]:
        if message["method"] == "initialized":
            continue
        if "id" in message:
            answers.append(client.begin(message["method"], message["params"], message["id"]))
        else:
            client.post(message)
    await client.settled()
    results = await asyncio.gather(*answers, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    assert [e for e in errors if not (isinstance(e, ResponseError) and e.code == CANCELLED)] == []
    assert results
    assert session.texts
    assert "window/showMessage" not in dict(client.notifications)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("name", sorted(set(ALL) - PULLS))
async def test_clients_that_do_not_pull_are_sent_diagnostics(name: str, client: Client) -> None:
    session_recording = recorded(name)
    await client.initialize(session_recording["initialize"])
    opening = next(m for m in session_recording["messages"] if m["method"].endswith("didOpen"))
    client.post(opening)
    (published, *_) = await client.heard("textDocument/publishDiagnostics")
    document = opening["params"]["textDocument"]
    assert published["uri"] == document["uri"]
    assert published["version"] == document["version"]
    assert published["diagnostics"]
