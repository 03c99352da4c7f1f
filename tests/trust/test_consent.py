"""Asking: once for each folder, without holding anything up, and the answers take effect at
once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import ResponseError, on
from tests.trust.process import (
    FUNCTION,
    TRACED,
    answering,
    asked,
    environment,
    findings_with,
    home,
    hover,
    hover_with,
    open_file,
    questions,
    run,
    server,
    spy,
    store,
    stored,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "package").mkdir(parents=True)
    return made


def exists(path: Path) -> bool:
    return path.exists()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("answer", ["No", None, "Trust it at once", {"odd": 1}])
async def test_without_a_yes_only_the_text_is_served_and_nobody_is_asked_twice(
    tmp_path: Path, project: Path, answer: Any
) -> None:
    async with server(tmp_path, project) as client:
        reply = {"title": answer} if isinstance(answer, str) else answer
        client.answers["window/showMessageRequest"] = lambda params: reply
        text = FUNCTION.replace("f32[4]", "f32[4]\n        y: f32[") + "\n\n# jaxsight: ignore\n"
        first, second = project / "a.py", project / "package" / "b.py"
        open_file(client, first)
        open_file(client, second, text)
        await asked(client)
        assert "not trusted" in await hover(client, first)
        assert "example inputs have errors" in await hover(client, second)
        assert await findings_with(client, second, 1)  # what is wrong with the text
        found = await client.request("textDocument/completion", on(second.as_uri(), 7, 14))
        assert found is not None
        statuses = await client.heard("jaxsight/status")
        assert {status["state"] for status in statuses} == {"untrusted"}
        assert "jaxsight.trust" in statuses[-1]["detail"]
        client.edit(first.as_uri(), 2, {"text": FUNCTION.replace("sin", "cos")})
        assert "not trusted" in await hover(client, first)
        assert len(questions(client)) == 1
        await run(client, "jaxsight.trust", str(project))
        await asked(client, 2)
    assert not exists(store(tmp_path))


async def test_once_holds_for_the_process_and_trust_for_the_next_ones(
    tmp_path: Path, project: Path
) -> None:
    file = project / "package" / "model.py"
    for number, answer in enumerate(["Once", "Trust this folder", None]):
        async with server(tmp_path, project) as client:
            answering(client, answer)
            open_file(client, file)
            await hover_with(client, file, TRACED)
            assert len(questions(client)) == (number < 2)
        assert exists(store(tmp_path)) == (number > 0)
    assert stored(tmp_path) == {"version": 1, "folders": [str(project)], "approvals": []}


async def test_no_file_of_a_project_and_no_setting_of_a_client_trusts_it(
    tmp_path: Path, project: Path
) -> None:
    mark = tmp_path / "ran"
    environment(project / ".venv", mark)
    write(project / "pyproject.toml", '[tool.jaxsight]\ntrust = "always"\n')
    write(project / "jaxsight" / "config.toml", 'trust = "always"\n')
    write(project / ".config" / "jaxsight" / "config.toml", 'trust = "always"\n')
    settings = {"trust": "always", "trusted": True}
    async with server(tmp_path, project, **settings) as client:
        client.answers["workspace/configuration"] = lambda params: [
            settings for _ in params["items"]
        ]
        told = {"settings": {"jaxsight": settings}}
        client.notify("workspace/didChangeConfiguration", told)
        client.notify("jaxsight/trust", {"trusted": True})
        open_file(client, project / "model.py")
        assert "not trusted" in await hover(client, project / "model.py")
        await asked(client)
        assert not exists(mark)


@pytest.mark.parametrize("policy", ["never", "always", "editor"])
async def test_a_policy_asks_nobody(tmp_path: Path, project: Path, policy: str) -> None:
    file = project / "model.py"
    arguments = ("--trust", policy)
    async with server(tmp_path, project, arguments=arguments) as client:
        open_file(client, file)
        if policy != "always":
            assert "not trusted" in await hover(client, file)
            client.notify("jaxsight/trust", {"trusted": True})
        if policy == "never":
            assert "not trusted" in await hover(client, file)
        else:
            await hover_with(client, file, TRACED)
            client.notify("jaxsight/trust", {"trusted": False})
            await client.settled()
            assert "not trusted" in await hover(client, file)
        assert questions(client) == []


async def test_the_users_own_configuration_is_read(tmp_path: Path, project: Path) -> None:
    write(home(tmp_path) / ".config" / "jaxsight" / "config.toml", 'trust = "always"\n')
    async with server(tmp_path, project) as client:
        open_file(client, project / "model.py")
        await hover_with(client, project / "model.py", TRACED)
        assert questions(client) == []


async def test_a_file_outside_the_workspace_needs_the_trust_of_its_own_project(
    tmp_path: Path, project: Path
) -> None:
    mark = tmp_path / "ran"
    other = tmp_path / "downloads" / "other"
    environment(other / ".venv", mark)
    write(other / "pyproject.toml", "")
    async with server(tmp_path, project) as client:
        answering(client, "Trust this folder")
        open_file(client, project / "model.py")
        await hover_with(client, project / "model.py", TRACED)
        answering(client, None)
        for file in (other / "inner" / "model.py", tmp_path / "downloads" / "alone.py"):
            open_file(client, file)
            assert "not trusted" in await hover(client, file)
        messages = [each["message"] for each in await asked(client, 3)]
        assert [str(other) in message for message in messages] == [False, True, False]
        assert str(tmp_path / "downloads") in messages[2]
        assert not exists(mark)


@pytest.mark.parametrize("moment", ["with the folder", "after it"])
async def test_an_interpreter_elsewhere_that_a_project_names_is_allowed_by_its_user(
    tmp_path: Path, project: Path, moment: str
) -> None:
    mark = tmp_path / "ran"
    python = spy(tmp_path / "elsewhere" / "python", mark)
    file = project / "model.py"
    settings = f"[tool.jaxsight]\npython = {json.dumps(str(python))}\n"
    if moment == "with the folder":
        write(project / "pyproject.toml", settings)
    async with server(tmp_path, project) as client:
        answering(client, "Trust this folder")
        open_file(client, file)
        await hover_with(client, file, TRACED)
        assert exists(mark) == (moment == "with the folder")
        if moment == "with the folder":
            assert str(python) in questions(client)[0]
        else:
            answering(client, None)
            write(project / "pyproject.toml", settings)
            uri = (project / "pyproject.toml").as_uri()
            changed = {"changes": [{"uri": uri, "type": 1}]}
            client.notify("workspace/didChangeWatchedFiles", changed)
            assert "waits for your approval" in await hover_with(client, file, str(python))
            assert not exists(mark)
            assert str(python) in (await asked(client, 2))[1]["message"]
            answering(client, "Allow")
            await run(client, "jaxsight.trust")
            await hover_with(client, file, TRACED)
            assert exists(mark)
    approval = {"folder": str(project), "what": str(python)}
    assert stored(tmp_path)["approvals"] == [approval]


async def test_what_is_decided_in_a_terminal_a_running_server_takes_up(
    tmp_path: Path, project: Path
) -> None:
    from tests.trust.test_attacks import jaxsight

    file = project / "model.py"
    async with server(tmp_path, project) as client:
        open_file(client, file)
        assert "not trusted" in await hover(client, file)
        assert jaxsight(tmp_path, "trust", str(project)).returncode == 0
        client.edit(file.as_uri(), 2, {"text": FUNCTION + "\n"})
        await hover_with(client, file, TRACED)
        assert jaxsight(tmp_path, "trust", str(project), "--forget").returncode == 0
        client.edit(file.as_uri(), 3, {"text": FUNCTION.replace("sin", "cos")})
        await hover_with(client, file, "not trusted")


async def test_the_command_says_when_nothing_waits(tmp_path: Path, project: Path) -> None:
    async with server(tmp_path, project, arguments=("--trust=always",)) as client:
        await run(client, "jaxsight.trust")
        shown = await client.heard("window/showMessage")
        assert shown[-1]["message"] == "No pending decisions."


async def test_where_an_editor_shows_no_questions_a_message_names_the_command_for_a_terminal(
    tmp_path: Path, project: Path
) -> None:
    def refuse(params: object) -> None:
        raise ResponseError({"code": -32601, "message": "method not found"})

    async with server(tmp_path, project) as client:
        client.answers["window/showMessageRequest"] = refuse
        file = project / "model.py"
        open_file(client, file)
        await hover_with(client, file, "not trusted")
        (message,) = await client.heard("window/showMessage")
        assert f"run `jaxsight trust {project}` in a terminal" in message["message"]
