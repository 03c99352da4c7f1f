"""Folders, settings, trust, interpreters and files: what reaches the engine, from clients of every
habit.
"""

from __future__ import annotations

from typing import Any

import pytest

from jaxsight.events import Consent
from tests.lsp.client import Client, recorded
from tests.lsp.fake_session import FakeSession

ROOT = "/home/user/project"


def folder(name: str) -> dict[str, str]:
    return {"uri": f"file:///home/user/{name}", "name": name}


async def test_settings_are_known_before_the_client_is_answered(
    client: Client, session: FakeSession
) -> None:
    options = {"jaxsight": {"python": "/usr/bin/python3"}}
    await client.initialize(recorded("helix_25.01.1")["initialize"], initializationOptions=options)
    first = session.configured[0]
    assert first.roots == (ROOT,)
    assert first.editor == {"python": "/usr/bin/python3"}
    assert first.trusted is None


async def test_options_without_a_section_are_settings(client: Client, session: FakeSession) -> None:
    options = {"inlayHints": {"shapes": False}, "trusted": True}
    await client.initialize(recorded("helix_25.01.1")["initialize"], initializationOptions=options)
    assert session.configured[0].editor == {"inlayHints": {"shapes": False}}


async def test_client_is_asked_for_its_settings(client: Client, session: FakeSession) -> None:
    client.answers["workspace/configuration"] = lambda params: [
        {"codeLens": False} if question["section"] == "jaxsight" else None
        for question in params["items"]
    ]
    await client.initialize(recorded("vscode_139")["initialize"])
    await client.heard("workspace/configuration")
    await client.settled()
    assert session.configured[-1].editor == {"codeLens": False}


async def test_settings_that_arrive_late_take_effect(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    await client.heard("workspace/configuration")
    client.answers["workspace/configuration"] = lambda params: [
        {"codeLens": False} if question["section"] == "jaxsight" else None
        for question in params["items"]
    ]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.heard("workspace/configuration", 2)
    await client.settled()
    assert session.configured[-1].editor == {"codeLens": False}


async def test_settings_that_are_sent_along_take_effect(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vim9_ale")["initialize"])
    settings = {"jaxsight": {"codeLens": False}, "other": {"x": 1}}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    await client.settled()
    assert session.configured[-1].editor == {"codeLens": False}


async def test_empty_settings_take_nothing_back(client: Client, session: FakeSession) -> None:
    options = {"inlayHints": {"shapes": False, "kernels": True}}
    await client.initialize(recorded("jupyterlab_lsp")["initialize"], initializationOptions=options)
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    settings = {"jaxsight": {"inlayHints": {"kernels": False}}}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    await client.settled()
    assert session.configured[-1].editor == {"inlayHints": {"shapes": False, "kernels": False}}


async def test_same_settings_are_told_once(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    for _ in range(3):
        client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.heard("workspace/configuration", 4)
    await client.settled()
    assert len(session.configured) == 1


async def test_interpreter_of_the_editors_python_settings_is_taken_for_its_folder(
    client: Client, session: FakeSession
) -> None:
    def answer(params: Any) -> list[Any]:
        return [
            {"defaultInterpreterPath": "${workspaceFolder}/.venv/bin/python"}
            if question["section"] == "python" and question.get("scopeUri") == folder("b")["uri"]
            else None
            for question in params["items"]
        ]

    client.answers["workspace/configuration"] = answer
    folders = [folder("a"), folder("b")]
    await client.initialize(recorded("vscode_139")["initialize"], workspaceFolders=folders)
    await client.heard("workspace/configuration")
    await client.settled()
    assert session.configured[-1].python == {"/home/user/b": "/home/user/b/.venv/bin/python"}


async def test_folder_has_settings_of_its_own(client: Client, session: FakeSession) -> None:
    def answer(params: Any) -> list[Any]:
        general = {"codeLens": False, "inlayHints": {"shapes": True}}
        special = {**general, "inlayHints": {"shapes": False}}
        own = {folder("b")["uri"]: special}
        return [
            own.get(question.get("scopeUri"), general)
            if question["section"] == "jaxsight"
            else None
            for question in params["items"]
        ]

    client.answers["workspace/configuration"] = answer
    folders = [folder("a"), folder("b")]
    await client.initialize(recorded("vscode_139")["initialize"], workspaceFolders=folders)
    await client.heard("workspace/configuration")
    await client.settled()
    last = session.configured[-1]
    assert last.editor == {"codeLens": False, "inlayHints": {"shapes": True}}
    assert last.by_root == {"/home/user/b": {"codeLens": False, "inlayHints": {"shapes": False}}}


async def test_chosen_interpreters_are_told_by_our_notification(
    client: Client, session: FakeSession
) -> None:
    options = {"interpreters": {folder("project")["uri"]: "/first"}}
    params = recorded("vscode_139")["initialize"]
    await client.initialize(params, initializationOptions=options)
    assert session.configured[0].python == {ROOT: "/first"}
    client.notify("jaxsight/interpreters", {"interpreters": {folder("project")["uri"]: "/second"}})
    await client.settled()
    assert session.configured[-1].python == {ROOT: "/second"}


async def test_untrusted_workspace_stays_so_until_it_is_trusted(
    client: Client, session: FakeSession
) -> None:
    params = recorded("vscode_139")["initialize"]
    await client.initialize(params, initializationOptions={"trusted": False})
    await client.settled()
    assert [c.trusted for c in session.configured] == [False]
    client.notify("jaxsight/trust", {"trusted": True})
    await client.settled()
    assert session.configured[-1].trusted is True


async def test_questions_to_the_user_are_put_to_the_client_and_answers_told(
    client: Client, session: FakeSession
) -> None:
    consent = Consent("/work", "", "Run it?", ("Trust this folder", "No"))
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    for answer in ({"title": "No"}, None):
        client.answers["window/showMessageRequest"] = lambda params, answer=answer: answer
        session.events.put_nowait(consent)
        await client.heard("window/showMessageRequest", len(session.decided) + 1)
        await client.settled()
    question = {"type": 2, "message": "Run it?"}
    question["actions"] = [{"title": "Trust this folder"}, {"title": "No"}]
    assert await client.heard("window/showMessageRequest") == [question, question]
    assert session.decided == [(consent, "No"), (consent, None)]


async def test_the_command_asks_again_and_decides_nothing(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    for arguments in ([], ["/work"], ["nothing"]):
        command = {"command": "jaxsight.trust", "arguments": arguments}
        assert await client.request("workspace/executeCommand", command) is None
    assert session.asked_again == [None, "/work", "nothing"]
    assert session.decided == []
    assert len(await client.heard("window/showMessage")) == 1


async def test_folders_come_and_go(client: Client, session: FakeSession) -> None:
    folders = [folder("a"), folder("b")]
    await client.initialize(recorded("vscode_139")["initialize"], workspaceFolders=folders)
    event = {"added": [folder("c")], "removed": [folder("a")]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    await client.settled()
    assert session.configured[-1].roots == ("/home/user/b", "/home/user/c")


async def test_client_without_folders_gives_its_root(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vim9_ale")["initialize"])
    assert session.configured[0].roots == (ROOT,)


async def test_jupyters_invented_folder_is_the_real_one(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("jupyterlab_lsp")["initialize"])
    assert session.configured[0].roots == (ROOT,)


async def test_changes_on_disk_are_watched_and_told(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    (registered,) = await client.heard("client/registerCapability")
    methods = {registration["method"] for registration in registered["registrations"]}
    of_programs = {method for method in methods if method.startswith("textDocument/")}
    assert methods - of_programs == {
        "workspace/didChangeConfiguration",
        "workspace/didChangeWatchedFiles",
    }
    assert "textDocument/definition" in of_programs
    changes = [{"uri": "file:///home/user/a%20b.py", "type": 2}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    await client.settled()
    assert session.changed_files == ["/home/user/a b.py"]


async def test_saves_stand_for_changes_where_nothing_is_watched(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vim9_ale")["initialize"])
    assert client.requests == []
    document = {"uri": "file:///home/user/project/x.py"}
    client.notify("textDocument/didSave", {"textDocument": document})
    await client.settled()
    assert session.changed_files == ["/home/user/project/x.py"]


@pytest.mark.parametrize(
    "settings",
    [
        {"trusted": False},
        {"jaxsight": {"trusted": False}},
        {"jaxsight": {"trusted": False, "x": 1}},
    ],
)
async def test_settings_revoke_trust(
    client: Client, session: FakeSession, settings: dict[str, object]
) -> None:
    await client.initialize(
        recorded("helix_25.01.1")["initialize"], initializationOptions={"trusted": True}
    )
    assert session.configured[-1].trusted is True
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    await client.settled()
    assert session.configured[-1].trusted is False
    assert "trusted" not in session.configured[-1].editor
    client.notify("jaxsight/trust", {"trusted": True})
    await client.settled()
    assert session.configured[-1].trusted is False


@pytest.mark.parametrize(
    "settings", [{"trusted": True}, {"jaxsight": {"trusted": True}}, {"trusted": None}, None]
)
async def test_settings_do_not_grant_trust(
    client: Client, session: FakeSession, settings: object
) -> None:
    options = {"jaxsight": {"trusted": True}}
    await client.initialize(recorded("helix_25.01.1")["initialize"], initializationOptions=options)
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    await client.settled()
    assert session.configured[-1].trusted is None


async def test_an_answer_to_our_question_about_settings_revokes_trust(
    client: Client, session: FakeSession
) -> None:
    client.answers["workspace/configuration"] = lambda params: [
        {"trusted": False} if question["section"] == "jaxsight" else None
        for question in params["items"]
    ]
    await client.initialize(
        recorded("neovim_0.12.4")["initialize"], initializationOptions={"trusted": True}
    )
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.settled()
    assert session.configured[-1].trusted is False
