"""Completion, lenses, code actions, commands and made documents."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from jaxsight.events import Refresh
from jaxsight.lsp.documents.uris import path_of
from tests.lsp.client import Client, ResponseError, on, recorded, span
from tests.lsp.fake_session import REFUSAL, FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"
JAXPR = "jaxsight-jaxpr:/home/user/project/sample.py/f.jaxpr"
DOCUMENT = {"textDocument": {"uri": URI}}


def command(name: str, *arguments: Any) -> dict[str, Any]:
    return {"command": name, "arguments": list(arguments)}


def actions_at(line: int, **context: Any) -> dict[str, Any]:
    return {**DOCUMENT, "range": span(line, 0, 0), "context": {"diagnostics": [], **context}}


async def test_completion_replaces_what_is_typed(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "'😋': f\n")
    completions = await client.request("textDocument/completion", on(URI, 0, 7))
    (proposal,) = completions["items"]
    assert proposal["textEdit"] == {"range": span(0, 6, 7), "newText": "f32"}
    assert client.capabilities["completionProvider"]["triggerCharacters"]


async def test_lens_runs_a_command_of_the_server(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    (lens,) = await client.request("textDocument/codeLens", DOCUMENT)
    assert lens["range"] == span(0, 4, 5)
    assert lens["command"]["arguments"] == [PATH, "f"]
    assert lens["command"]["command"] in client.capabilities["executeCommandProvider"]["commands"]


async def test_clicked_lens_asks_a_person_for_the_set(client: Client, session: FakeSession) -> None:
    client.answers["window/showMessageRequest"] = lambda params: params["actions"][1]
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    (lens,) = await client.request("textDocument/codeLens", DOCUMENT)
    await client.request("workspace/executeCommand", lens["command"])
    assert session.chosen == {(PATH, "f"): "decode"}
    ((_, question),) = [r for r in client.requests if r[0] == "window/showMessageRequest"]
    assert [action["title"] for action in question["actions"]] == [
        "(unnamed)",
        "decode",
        "long",
    ]


async def test_dismissed_question_changes_nothing(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    await client.request("workspace/executeCommand", command("jaxsight.chooseSet", URI, "f"))
    assert session.chosen == {}


async def test_named_set_is_chosen_without_a_question(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    await client.request("workspace/executeCommand", command("jaxsight.chooseSet", URI, "f", ""))
    assert session.chosen == {(PATH, "f"): ""}
    assert not client.requests or "window/showMessageRequest" not in dict(client.requests)


async def test_command_that_finds_nothing_says_so(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    params = command("jaxsight.chooseSet", URI, "nothing")
    assert await client.request("workspace/executeCommand", params) is None
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "there is no function nothing"


@pytest.mark.parametrize(
    "params",
    [
        command("jaxsight.chooseSet"),
        command("jaxsight.show", URI, "f", "poetry"),
        command("jaxsight.show", URI, "f", "jaxpr", "grad"),
        command("jaxsight.show", URI, "f", "lax", "derivative"),
        command("jaxsight.restart", 1),
        command("jaxsight.unknown"),
    ],
)
async def test_command_with_wrong_arguments_is_refused(
    params: dict[str, Any], client: Client
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    with pytest.raises(ResponseError) as error:
        await client.request("workspace/executeCommand", params)
    assert error.value.code == -32602


async def test_restart_command_restarts(client: Client, session: FakeSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    await client.request("workspace/executeCommand", command("jaxsight.restart"))
    root = "file:///home/user/project"
    await client.request("workspace/executeCommand", command("jaxsight.restart", root))
    assert session.restarted == [None, "/home/user/project"]


async def test_info_command_tells_who_serves_whom(client: Client) -> None:
    await client.initialize(recorded("emacs_30.1")["initialize"])
    info = await client.request("workspace/executeCommand", command("jaxsight.info"))
    assert info["client"] == "Eglot 1.17.30"
    assert info["positionEncoding"] == "utf-32"
    assert info["diagnostics"] == "push"
    assert info["roots"] == ["/home/user/project"]


async def test_action_edits_the_version_that_it_was_made_for(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "a\nb\n", version=7)
    (action,) = await client.request("textDocument/codeAction", actions_at(1))
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 7}
    assert change["edits"] == [{"range": span(1, 0, 0), "newText": "# added\n"}]


async def test_action_edits_plainly_where_versions_are_not_understood(client: Client) -> None:
    await client.initialize(recorded("neovim_0.12.4")["initialize"])
    client.open(URI, "a\nb\n")
    (action,) = await client.request("textDocument/codeAction", actions_at(1))
    assert list(action["edit"]) == ["changes"]
    assert list(action["edit"]["changes"]) == [URI]


@pytest.mark.parametrize(
    ("only", "count"),
    [
        (None, 1),
        (["refactor"], 1),
        (["refactor.rewrite.jaxsight"], 1),
        ([""], 1),
        (["quickfix"], 0),
        (["refactor.re"], 0),
    ],
)
async def test_only_actions_of_the_kinds_asked_for_are_given(
    only: list[str] | None, count: int, client: Client
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "a\n")
    context = {} if only is None else {"only": only}
    actions = await client.request("textDocument/codeAction", actions_at(0, **context))
    assert len(actions) == count


async def test_slow_edits_are_made_when_the_action_is_chosen(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n", version=7)
    _, action, _ = await client.request("textDocument/codeAction", actions_at(0))
    assert client.capabilities["codeActionProvider"]["resolveProvider"]
    assert action["title"] == "Put below"
    assert not {"edit", "command"} & action.keys()
    resolved = await client.request("codeAction/resolve", action)
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 7}
    assert change["edits"] == [{"range": span(1, 0, 0), "newText": "# f\n"}]


async def test_chosen_action_that_cannot_be_done_says_why_and_edits_nothing(client: Client) -> None:
    await client.initialize(recorded("neovim_0.12.4")["initialize"])
    client.open(URI, "def hard(): pass\n")
    _, action, _ = await client.request("textDocument/codeAction", actions_at(0))
    resolved = await client.request("codeAction/resolve", action)
    assert "edit" not in resolved
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "hard cannot be written as source"


async def test_a_long_refusal_is_one_clause_and_the_log_has_it_all(client: Client) -> None:
    await client.initialize(recorded("neovim_0.12.4")["initialize"])
    client.open(URI, "def deep(): pass\n")
    _, action, _ = await client.request("textDocument/codeAction", actions_at(0))
    await client.request("codeAction/resolve", action)
    (shown,) = await client.heard("window/showMessage")
    assert shown["message"].startswith("deep cannot be inverted: dot_general is invertible for a")
    assert shown["message"].endswith("… (all of it is in the log)")
    assert len(shown["message"]) <= 100
    logged = [m["message"] for name, m in client.notifications if name == "window/logMessage"]
    assert [text for text in logged if all(line in text for line in REFUSAL.splitlines())]


async def test_a_document_that_cannot_be_made_for_a_long_reason_has_it(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def deep(): pass\n")
    params = command("jaxsight.show", PATH, "deep", "pretty", "grad")
    shown = await client.request("workspace/executeCommand", params)
    assert shown["text"] == "".join(f"# {line}\n" for line in REFUSAL.splitlines())
    (document,) = await client.heard("window/showDocument")
    assert document["uri"] == shown["uri"]
    assert "window/showMessage" not in dict(client.notifications)


async def test_action_without_our_data_resolves_to_itself(client: Client) -> None:
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    client.open(URI, "a\n")
    (action,) = await client.request("textDocument/codeAction", actions_at(0))
    assert await client.request("codeAction/resolve", action) == action


async def test_slow_edits_are_not_offered_where_they_would_not_be_asked_for(
    client: Client,
) -> None:
    params = recorded("vscode_139")["initialize"]
    capabilities = json.loads(json.dumps(params["capabilities"]))
    del capabilities["textDocument"]["codeAction"]["resolveSupport"]
    await client.initialize(params, capabilities=capabilities)
    client.open(URI, "def f(): pass\n")
    actions = await client.request("textDocument/codeAction", actions_at(0))
    assert [action["title"] for action in actions] == ["Add", "Show"]


async def test_documents_are_not_offered_where_they_could_not_be_shown(client: Client) -> None:
    await client.initialize(recorded("helix_25.01.1")["initialize"])
    client.open(URI, "def f(): pass\n")
    actions = await client.request("textDocument/codeAction", actions_at(0))
    assert [action["title"] for action in actions] == ["Add", "Put below"]


async def test_source_is_a_document_by_its_style_and_its_transformation(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    params = command("jaxsight.show", PATH, "f", "pretty", "grad")
    shown = await client.request("workspace/executeCommand", params)
    uri = "jaxsight-pretty:/home/user/project/sample.py/grad(f).pretty.py"
    assert shown == {"uri": uri, "text": "# pretty grad f\n"}
    (document,) = await client.heard("window/showDocument")
    assert document["uri"] == uri
    content = await client.request("workspace/textDocumentContent", {"uri": uri})
    assert content == {"text": "# pretty grad f\n"}


async def test_made_document_is_given_by_the_standards_request(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    content = await client.request("workspace/textDocumentContent", {"uri": JAXPR})
    assert content == {"text": "{ f }\n"}


async def test_made_document_is_given_with_its_links_by_our_request(client: Client) -> None:
    await client.initialize(recorded("neovim_0.12.4")["initialize"])
    client.open(URI, "def f(): pass\n")
    content = await client.request("jaxsight/textDocumentContent", {"uri": JAXPR})
    assert content == {
        "text": "{ f }\n",
        "title": "f.jaxpr",
        "stale": False,
        "links": [{"line": 0, "path": "0", "uri": URI, "range": span(0, 4, 5)}],
    }


async def test_made_document_that_cannot_be_made_says_why(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    content = await client.request("workspace/textDocumentContent", {"uri": JAXPR})
    assert content == {"text": f"# {PATH} is not open\n"}


async def test_foreign_document_is_refused(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    with pytest.raises(ResponseError) as error:
        await client.request("workspace/textDocumentContent", {"uri": URI})
    assert error.value.code == -32602


async def test_made_document_is_refreshed_with_its_file(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    await client.request("workspace/textDocumentContent", {"uri": JAXPR})
    session.events.put_nowait(Refresh("/another.py"))
    session.events.put_nowait(Refresh(PATH))
    (refreshed,) = await client.heard("workspace/textDocumentContent/refresh")
    assert refreshed == {"uri": JAXPR}


async def test_show_command_opens_the_document_in_clients_that_can(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    params = command("jaxsight.show", PATH, "f", "jaxpr")
    shown = await client.request("workspace/executeCommand", params)
    assert shown == {"uri": JAXPR, "text": "{ f }\n"}
    (document,) = await client.heard("window/showDocument")
    assert document["uri"] == JAXPR


async def test_show_command_opens_a_file_in_clients_that_open_only_those(client: Client) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await client.initialize(recorded("neovim_0.12.4")["initialize"])
    client.open(URI, "def f(): pass\n")
    await client.request("workspace/executeCommand", command("jaxsight.show", URI, "f"))
    (document,) = await client.heard("window/showDocument")
    path = path_of(document["uri"])
    assert path is not None
    assert path.endswith("sample.f.jaxpr")
    assert await asyncio.to_thread(Path(path).read_text) == "{ f }\n"


async def test_show_command_gives_the_text_to_clients_that_cannot(client: Client) -> None:
    await client.initialize(recorded("vim9_ale")["initialize"])
    client.open(URI, "def f(): pass\n")
    shown = await client.request("workspace/executeCommand", command("jaxsight.show", URI, "f"))
    assert shown == {"uri": JAXPR, "text": "{ f }\n"}
    assert "window/showDocument" not in dict(client.requests)


async def test_a_target_is_chosen_by_name_or_by_asking(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    command = "workspace/executeCommand"
    await client.request(command, {"command": "jaxsight.chooseTarget", "arguments": ["cpu"]})
    client.answers["window/showMessageRequest"] = lambda params: params["actions"][0]
    await client.request(command, {"command": "jaxsight.chooseTarget", "arguments": []})
    assert session.targets == ["cpu", "cpu"], "the active one comes first"
    question_method = "window/showMessageRequest"
    (question,) = [params for name, params in client.requests if name == question_method]
    titles = [action["title"] for action in question["actions"]]
    assert titles[:2] == ["cpu", "cuda:gpu0 (install)"]
    assert len(titles) == 8
    assert "`jaxsight.target`" in question["message"]
    nowhere = {"command": "jaxsight.chooseTarget", "arguments": ["nowhere"]}
    await client.request(command, nowhere)
    (message,) = await client.heard("window/showMessage")
    assert "there is no target" in message["message"]


@pytest.mark.parametrize("argument", ["/home/user/logs/", "file:///home/user/logs"])
async def test_opened_profile_is_shown_as_a_document(client: Client, argument: str) -> None:
    client.answers["window/showDocument"] = lambda params: {"success": True}
    await client.initialize(recorded("vscode_139")["initialize"])
    answer = await client.request(
        "workspace/executeCommand", command("jaxsight.openProfile", argument)
    )
    assert answer is None  # this client does not wait for long work
    (document,) = await client.heard("window/showDocument")
    uri = "jaxsight-profile:/home/user/logs/report.profile.txt"
    assert document["uri"] == uri
    content = await client.request("workspace/textDocumentContent", {"uri": uri})
    assert content == {"text": "report of /home/user/logs\n"}


async def test_what_is_no_profile_is_said(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    params = command("jaxsight.openProfile", "/home/user/empty")
    assert await client.request("workspace/executeCommand", params) is None
    (message,) = await client.heard("window/showMessage")
    assert message["message"] == "no profile in /home/user/empty"
