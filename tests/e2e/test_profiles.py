"""*Open Profile* in an editor with the real engine: the report, and hints at lines."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from tests.e2e.editor import SERVER, VSCODE, introduction, started
from tests.profiles.made import PROGRAMS, gpu_plane, host_plane, write

MODEL = """\
def loss(params, x):
    # made for line numbers
    h = x + params["bias"]
    return h @ params["w"]
"""


async def test_a_profile_is_opened_and_its_lines_have_hints(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    write(tmp_path / "logs" / "host.xplane.pb", PROGRAMS, host_plane(3), gpu_plane(0, 3))
    params = introduction(VSCODE, tmp_path)
    params.capabilities.experimental = {"jaxsight": True}
    async with started(SERVER) as editor:
        answer = await editor.initialize_session(params)
        editor.server_capabilities = answer.capabilities
        uri = (tmp_path / "model.py").as_uri()
        editor.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, MODEL))
        )
        command = types.ExecuteCommandParams(
            command="jaxsight.openProfile", arguments=[(tmp_path / "logs").as_uri()]
        )
        opened = await editor.workspace_execute_command_async(command)
        assert opened["text"].startswith("⏱ 3 steps of 1.00 ms · GPU:0 busy 78 %")
        assert opened["uri"].endswith("/logs/report.profile.txt")
        whole = types.Range(types.Position(0, 0), types.Position(4, 0))
        hints = await editor.text_document_inlay_hint_async(
            types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        )
        labels = {hint.position.line: hint.label for hint in hints or []}
        assert {line: str(label).strip() for line, label in labels.items()} == {
            2: "⏱ 25 %",
            3: "⏱ 53 %",
        }
