"""Targets: what a client lists itself, and compilers that are installed once somebody agrees."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.lsp.client import Client, ResponseError, recorded
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
RUN = "workspace/executeCommand"
QUESTION = "window/showMessageRequest"
INSTALL = {"command": "jaxsight.installTarget", "arguments": ["cuda", URI]}


async def test_targets_are_plain_data(client: Client, session: FakeSession) -> None:
    await client.initialize(knowing())
    session.choose_target("cuda:gpu1")
    offers = await client.request("jaxsight/targets", {"uri": URI})
    assert (offers["active"], offers["jax"]) == ("cuda:gpu1", "0.12.0")
    assert offers["targets"][2] == {
        "target": "cuda:gpu1",
        "group": "gpu",
        "title": "cuda:gpu1",
        "figures": "",
        "state": "needs",
        "detail": "detail",
        "compiler": "cuda",
        "active": True,
        "approved": True,
    }
    assert offers["compilers"] == [
        {
            "platform": "cuda",
            "title": "NVIDIA GPUs",
            "download": 290,
            "installed": [],
            "disk": 0,
        }
    ]


async def test_nothing_is_installed_unless_somebody_agrees(client: Client) -> None:
    await client.initialize(knowing())
    for answer in (lambda params: None, lambda params: params["actions"][0]):
        client.answers[QUESTION] = answer
        await client.request(RUN, INSTALL)
    assert "window/showMessage" not in dict(client.notifications)
    client.answers[QUESTION] = agree
    await client.request(RUN, INSTALL)
    (message,) = await client.heard("window/showMessage")
    assert message == {"type": 3, "message": "Installed the compiler for NVIDIA GPUs"}
    questions = [params["message"] for name, params in client.requests if name == QUESTION]
    assert len(questions) == 3
    assert "290 MB from pypi.example, for JAX 0.12.0" in questions[0]
    reports = await client.heard("$/progress", 3)
    assert [report["value"]["kind"] for report in reports] == ["begin", "report", "end"]
    assert reports[0]["value"]["cancellable"]
    assert reports[1]["value"]["message"] == "installing: 12 MB on disk"


async def test_an_installation_ends_when_it_is_cancelled(
    client: Client, session: FakeSession
) -> None:
    session.slow = asyncio.Event()
    client.answers[QUESTION] = agree
    await client.initialize(knowing())
    running = asyncio.ensure_future(client.request(RUN, INSTALL))
    begin, _ = await client.heard("$/progress", 2)
    client.notify("window/workDoneProgress/cancel", {"token": begin["token"]})
    assert await running is None
    assert session.cancelled == ["cuda"]
    assert "window/showMessage" not in dict(client.notifications)


async def test_a_chosen_target_that_needs_a_compiler_offers_it(
    client: Client, session: FakeSession
) -> None:
    client.answers[QUESTION] = agree
    await client.initialize(recorded("emacs_30.1")["initialize"])
    choice = {"command": "jaxsight.chooseTarget", "arguments": ["cuda:gpu3"]}
    assert await client.request(RUN, choice) is None
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "Installed the compiler for NVIDIA GPUs"
    assert session.targets == ["cuda:gpu3"]


async def test_a_client_without_questions_is_told_the_command(client: Client) -> None:
    def refuse(params: Any) -> Any:
        raise ResponseError({"code": -32601, "message": "no questions here"})

    client.answers[QUESTION] = refuse
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    await client.request(RUN, INSTALL)
    (message,) = await client.heard("window/showMessage")
    assert "run `jaxsight targets install cuda` in a terminal" in message["message"]


async def test_what_cannot_be_installed_is_told(client: Client) -> None:
    await client.initialize(knowing())
    await client.request(RUN, {"command": "jaxsight.installTarget", "arguments": ["abacus"]})
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "no compiler for abacus"


def agree(params: Any) -> Any:
    return params["actions"][-1]


def knowing() -> dict[str, Any]:
    """A client that understands our own requests."""
    params: dict[str, Any] = recorded("vscode_139")["initialize"]
    params["capabilities"]["experimental"] = {"jaxsight": True}
    return params
