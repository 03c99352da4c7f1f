"""What the engine tells unasked: status, output, messages and progress, to clients of every
kind.
"""

from __future__ import annotations

from typing import Any

from jaxsight.events import Message, Output, Progress, Status
from tests.lsp.client import Client, recorded
from tests.lsp.fake_session import FakeSession

ROOT = "/home/user/project"


def knowing() -> dict[str, Any]:
    """A client that understands our own notifications."""
    params: dict[str, Any] = recorded("vscode_139")["initialize"]
    params["capabilities"]["experimental"] = {"jaxsight": True}
    return params


async def test_status_is_told_with_what_runs_and_the_way_out(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    status = Status(ROOT, "failed", "there is no jax: choose another python", "/py", "on PATH")
    session.events.put_nowait(status)
    (params,) = await client.heard("jaxsight/status")
    assert params == {
        "root": "file:///home/user/project",
        "state": "failed",
        "detail": "there is no jax: choose another python",
        "python": "/py",
        "reason": "on PATH",
        "jax": "",
        "confined": "",
    }
    (logged,) = await client.heard("window/logMessage")
    assert "there is no jax" in logged["message"]
    command = {"command": "jaxsight.info"}
    info = await client.request("workspace/executeCommand", command)
    assert info["statuses"] == [params]


async def test_busy_and_ready_do_not_fill_the_log(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    for state in ("starting", "busy"):
        session.events.put_nowait(Status(ROOT, state))
    await client.heard("jaxsight/status", 2)
    await client.settled()
    assert "window/logMessage" not in dict(client.notifications)


async def test_output_of_user_code_is_a_line_of_the_log(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    session.events.put_nowait(Output("/home/user/x.py", "hello\n"))
    (logged,) = await client.heard("window/logMessage")
    assert logged == {"type": 4, "message": "/home/user/x.py: hello"}


async def test_output_is_a_notification_for_clients_that_know_it(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(knowing())
    session.events.put_nowait(Output("/home/user/x y.py", "hello\n"))
    (params,) = await client.heard("jaxsight/output")
    assert params == {"uri": "file:///home/user/x%20y.py", "text": "hello\n"}
    assert "window/logMessage" not in dict(client.notifications)


async def test_message_is_shown(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    session.events.put_nowait(Message("warning", "`codeLens` expects true or false"))
    (shown,) = await client.heard("window/showMessage")
    assert shown == {"type": 2, "message": "`codeLens` expects true or false"}


async def test_long_work_is_a_bar_from_begin_to_end(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    for event in (
        Progress("k", "Starting JAX", "importing"),
        Progress("other", "Tracing f"),
        Progress("k", "Starting JAX", "ready soon"),
        Progress("k", "Starting JAX", done=True),
        Progress("other", "Tracing f", done=True),
    ):
        session.events.put_nowait(event)
    created = await client.heard("window/workDoneProgress/create", 2)
    steps = await client.heard("$/progress", 7)
    first = created[0]["token"]
    assert [s["value"] for s in steps if s["token"] == first] == [
        {"kind": "begin", "title": "Starting JAX", "cancellable": False},
        {"kind": "report", "message": "importing"},
        {"kind": "report", "message": "ready soon"},
        {"kind": "end"},
    ]
    kinds = [s["value"]["kind"] for s in steps if s["token"] != first]
    assert kinds == ["begin", "report", "end"]


async def test_clients_that_show_no_progress_get_none(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("emacs_30.1")["initialize"])
    session.events.put_nowait(Progress("k", "Starting JAX"))
    session.events.put_nowait(Message("info", "after"))
    await client.heard("window/showMessage")
    assert "window/workDoneProgress/create" not in dict(client.requests)
    assert "$/progress" not in dict(client.notifications)
