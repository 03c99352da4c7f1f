"""What real clients say first, replayed: each gets the encoding and the features that it can use,
and no errors. What has an `origin` was not recorded, but written after the client's source.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from tests.e2e.editor import RECORDED, SERVER, Editor, answer_to, configuration, converter
from tests.e2e.programs import ATTENTION
from tests.lsp.client import CLIENTS, recorded
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "/home/user/project"
"""The folder of the recordings."""

ENCODINGS = {
    "emacs_30.1": "utf-32",
    "helix_25.01.1": "utf-8",
    "jupyterlab_lsp": "utf-16",
    "kate": "utf-16",
    "neovim_0.10.4": "utf-16",
    "neovim_0.11.4": "utf-8",
    "neovim_0.12.4": "utf-8",
    "sublime_lsp": "utf-16",
    "vim9_ale": "utf-16",
    "vscode_100": "utf-16",
    "vscode_139": "utf-16",
    "vscode_139_notebook": "utf-16",
    "vscode_93": "utf-16",
    "zed": "utf-16",
}
PULLS = {"neovim_0.12.4", "vscode_100", "vscode_139", "vscode_139_notebook", "vscode_93"}
"""Neovim 0.10 and 0.11 can pull, but cannot be told to pull again."""
OPENS_CONTENT = {"vscode_100", "vscode_139", "vscode_139_notebook", "vscode_93"}


async def test_no_recording_is_forgotten() -> None:
    assert sorted(ENCODINGS) == sorted(path.stem for path in CLIENTS.glob("*.json"))


class RecordedEditor(Editor):
    """An editor that says what was recorded."""

    name = ""
    root = Path()
    conversation: Sequence[dict[str, Any]] = ()

    async def introduce_as_recorded(self, name: str, root: Path) -> None:
        """Introduce the editor as in a recording, with this Python as the user's."""
        recording = json.loads(json.dumps(recorded(name)).replace(ROOT, str(root)))
        options = {**QUIET, "python": sys.executable}
        params = {**recording["initialize"], "initializationOptions": options}
        self.name = name
        self.root = root
        self.conversation = recording["messages"]
        self.capabilities = converter().structure(params["capabilities"], types.ClientCapabilities)
        message = {"id": "introduction", "method": types.INITIALIZE, "params": params}
        introduction = await answer_to(self.send_recorded(message))
        assert introduction.server_info.name == "jaxsight"
        self.server_capabilities = introduction.capabilities
        self.initialized(types.InitializedParams())


@pytest_lsp.fixture(
    config=configuration(SERVER, RecordedEditor),
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in RECORDED.values() else [pytest.mark.slow])
        for name in sorted(ENCODINGS)
    ],
)
async def editor(
    client: RecordedEditor, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """Each editor that was recorded."""
    await client.introduce_as_recorded(request.param, tmp_path_factory.mktemp("project").resolve())
    yield
    await client.shutdown_session()


async def test_client_is_served_in_the_units_it_prefers(editor: RecordedEditor) -> None:
    assert editor.server_capabilities.position_encoding == ENCODINGS[editor.name]


async def test_diagnostics_are_pulled_only_by_clients_that_can_be_told_to_pull_again(
    editor: RecordedEditor,
) -> None:
    pulled = editor.server_capabilities.diagnostic_provider is not None
    assert pulled == (editor.name in PULLS)


async def test_made_documents_are_offered_to_clients_that_open_them(editor: RecordedEditor) -> None:
    assert editor.server_capabilities.workspace is not None
    offered = editor.server_capabilities.workspace.text_document_content
    compiled = {"hlo", "hlo-metadata", "kernels"}
    source = {"lax", "pretty", "repro", "reduced"}
    kinds = {"jaxpr", "stablehlo", "view", "profile", *source, *compiled}
    assert (offered is not None) == (editor.name in OPENS_CONTENT)
    if offered is not None:
        assert set(offered.schemes) == {f"jaxsight-{kind}" for kind in kinds}


async def test_first_messages_of_a_real_session_are_answered_without_errors(
    editor: RecordedEditor,
) -> None:
    answers = []
    for message in editor.conversation:
        if message["method"] == types.INITIALIZED:
            continue
        answer = editor.send_recorded(message)
        if "id" in message:
            answers.append(answer_to(answer))
    await editor.settled()
    results = await asyncio.gather(*answers, return_exceptions=True)
    errors = [answer for answer in results if isinstance(answer, BaseException)]
    assert [e for e in errors if not isinstance(e, JsonRpcRequestCancelled)] == []
    assert results
    assert editor.messages == []
    logged = [log for log in editor.log_messages if log.type == types.MessageType.Error]
    assert logged == []
    assert "ERROR" not in editor.errors
    assert "Traceback" not in editor.errors


async def test_only_clients_that_do_not_pull_are_sent_diagnostics(editor: RecordedEditor) -> None:
    uri = (editor.root / "branch.py").as_uri()
    editor.open(uri, ATTENTION, version=0)

    def published() -> list[types.PublishDiagnosticsParams]:
        return [params for params in editor.published if params.uri == uri]

    if editor.name in PULLS:
        await editor.hover(uri, 4, 6)
        assert published() == []
        return
    await editor.until(lambda: any(params.diagnostics for params in published()))
    assert {params.version for params in published()} == {0}
