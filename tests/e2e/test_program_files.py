"""Files of programs in an editor: a lens shows them as JAX source, through the real server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lsprotocol import types

from jaxsight.workers.program_files import NotRead, program_text
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


async def test_a_program_that_takes_too_long_to_read_is_given_up() -> None:
    wanted = {"to": "python", "options": {}}
    with pytest.raises(NotRead, match=r"it takes longer than 0.01 s; help: raise `timeouts"):
        await program_text(sys.executable, PROGRAM.encode(), wanted, 0.01)
