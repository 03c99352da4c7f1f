"""Files of programs in an editor: a lens shows them as JAX source, through the real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.e2e.editor import VSCODE, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAM = """\
module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.sine %arg0 : tensor<3xf32>
    %1 = stablehlo.add %0, %arg1 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
"""


@pytest.mark.slow
async def test_program_file_is_shown_as_source(tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(PROGRAM)
    broken = tmp_path / "broken.mlir"
    broken.write_text("module {")
    async with opened(VSCODE, tmp_path) as editor:
        for each in (file, broken):
            document = types.TextDocumentItem(each.as_uri(), "stablehlo", 1, each.read_text())
            editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
        (lens,) = await editor.lenses(file.as_uri())
        assert lens.command is not None
        assert lens.command.title == "show as JAX source"
        shown = await editor.execute(lens.command)
        assert shown["uri"].endswith("/f.mlir/f.pretty.py")
        assert "    return jnp.sin(x) + y\n" in shown["text"]
        content = await editor.ask("jaxsight/textDocumentContent", uri=shown["uri"])
        assert content["text"] == shown["text"]
        edit = types.TextDocumentContentChangeWholeDocument(PROGRAM.replace("sine", "cosine"))
        version = types.VersionedTextDocumentIdentifier(uri=file.as_uri(), version=2)
        editor.text_document_did_change(types.DidChangeTextDocumentParams(version, [edit]))
        (lens,) = await editor.lenses(file.as_uri())
        assert lens.command is not None
        assert "    return jnp.cos(x) + y\n" in (await editor.execute(lens.command))["text"]
        (lens,) = await editor.lenses(broken.as_uri())
        shown = await editor.execute(lens.command)
        said = str(shown) + str(editor.received)
        assert "cannot read the program" in said


@pytest.mark.slow
async def test_lines_of_source_are_linked_to_lines_of_the_program_and_follow_edits(
    tmp_path: Path,
) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(PROGRAM)
    async with opened(VSCODE, tmp_path) as editor:
        document = types.TextDocumentItem(file.as_uri(), "mlir", 1, PROGRAM)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
        shown = await editor.execute("jaxsight.show", file.as_uri(), "f", "lax")
        assert linked(await editor.linked_content(shown["uri"]), PROGRAM) == [
            ("sin = lax.sin(x)", "%0 = stablehlo.sine %arg0 : tensor<3xf32>"),
            ("add = lax.add(sin, y)", "%1 = stablehlo.add %0, %arg1 : tensor<3xf32>"),
        ]
        edited = "// an edit\n" + PROGRAM.replace("sine", "cosine")
        edit = types.TextDocumentContentChangeWholeDocument(edited)
        version = types.VersionedTextDocumentIdentifier(uri=file.as_uri(), version=2)
        editor.text_document_did_change(types.DidChangeTextDocumentParams(version, [edit]))
        (refreshed,) = await editor.receive(types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH)
        assert refreshed.uri == shown["uri"]
        assert linked(await editor.linked_content(shown["uri"]), edited)[:1] == [
            ("cos = lax.cos(x)", "%0 = stablehlo.cosine %arg0 : tensor<3xf32>")
        ]


def linked(content: dict[str, Any], program: str) -> list[tuple[str, str]]:
    """Return the pairs of linked texts."""
    source, lines = content["text"].split("\n"), program.split("\n")
    pairs = []
    for link in content["links"]:
        start, end = link["range"]["start"], link["range"]["end"]
        assert start["line"] == end["line"]
        text = lines[start["line"]][start["character"] : end["character"]]
        pairs.append((source[link["line"]].strip(), text))
    return pairs


async def test_an_editor_shows_that_a_program_takes_too_long_to_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.jaxsight.timeouts]\ncompile = 0.01\n")
    file = tmp_path / "f.mlir"
    file.write_text(PROGRAM)
    async with opened(VSCODE, tmp_path) as editor:
        document = types.TextDocumentItem(file.as_uri(), "stablehlo", 1, PROGRAM)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
        assert await editor.execute("jaxsight.show", file.as_uri(), "f", "pretty") is None
        assert [message.message for message in editor.messages] == [
            "the program was not read within 0.01 s; help: raise `timeouts.compile`"
        ]
