"""`jaxsight.measure`: consent, progress, cancelling, and what the client is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.lsp.client import Client, ResponseError, recorded
from tests.lsp.fake_session import FakeSession
from tests.lsp.test_requests import PATH, URI, command

QUESTION = (
    "Measure `f` on this machine's CPU? Functions of /home/user/project then run many times with "
    "their example inputs"
)
ANSWER = {
    "headline": "f: 412 µs measured (≈ 380) on cpu",
    "wallSeconds": 412e-6,
    "deviceSeconds": 390e-6,
    "notes": ["median of 9 runs"],
}


async def opened(client: Client, *, knows_us: bool = True) -> None:
    params = recorded("vscode_139")["initialize"]
    params["capabilities"]["experimental"] = {"jaxsight": knows_us}
    await client.initialize(params)
    client.open(URI, "def f(): pass\n")


async def measure(client: Client, *arguments: str) -> Any:
    return await client.request("workspace/executeCommand", command("jaxsight.measure", *arguments))


def agree(params: dict[str, Any]) -> dict[str, str]:
    return next(item for item in params["actions"] if item["title"] == "Measure")


async def test_a_folder_is_asked_about_once(client: Client, session: FakeSession) -> None:
    client.answers["window/showMessageRequest"] = agree
    await opened(client)
    assert await measure(client, URI, "f") == ANSWER
    assert await measure(client, PATH, "f") == ANSWER
    assert session.measured.asked == [(PATH, "f"), (PATH, "f")]
    (question,) = [p for name, p in client.requests if name == "window/showMessageRequest"]
    assert question["message"] == QUESTION
    assert [item["title"] for item in question["actions"]] == ["Cancel", "Measure"]


@pytest.mark.parametrize("answer", [None, {"title": "Cancel"}])
async def test_nothing_runs_without_consent(
    client: Client, session: FakeSession, answer: object
) -> None:
    client.answers["window/showMessageRequest"] = lambda params: answer
    await opened(client)
    assert await measure(client, URI, "f") is None
    assert session.measured.asked == []


async def test_why_nothing_is_measured_is_shown(client: Client) -> None:
    client.answers["window/showMessageRequest"] = agree
    await opened(client)
    assert await measure(client, URI, "absent") is None
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "absent cannot be measured on cuda:h100"


async def test_a_client_that_does_not_wait_is_told_at_the_end(client: Client) -> None:
    client.answers["window/showMessageRequest"] = agree
    await opened(client, knows_us=False)
    assert await measure(client, URI, "f") is None
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == ANSWER["headline"]


async def test_progress_is_cancelled(client: Client, session: FakeSession) -> None:
    client.answers["window/showMessageRequest"] = agree
    client.answers["window/workDoneProgress/create"] = lambda params: None
    await opened(client)
    running = asyncio.create_task(measure(client, URI, "endless"))
    await client.heard("$/progress", 2)
    (created,) = [p for name, p in client.requests if name == "window/workDoneProgress/create"]
    client.notify("window/workDoneProgress/cancel", {"token": created["token"]})
    assert await running is None
    assert session.measured.ended == ["endless"]


async def test_a_lens_cancels(client: Client, session: FakeSession) -> None:
    await opened(client)
    assert await measure(client, URI, "f", "cancel") is None
    assert session.measured.cancelled == [(PATH, "f")]
    with pytest.raises(ResponseError) as error:
        await measure(client, URI, "f", "fast")
    assert error.value.code == -32602
