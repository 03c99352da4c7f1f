"""Jaxprs, StableHLO and HLO as an editor navigates in them, through the real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from tests.e2e.editor import Editor, on

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = '''\
import jax
import jax.numpy as jnp


@jax.jit
def dense(w, b, x):
    return jax.nn.relu(x @ w + b)


def block(params, x):
    for w, b in params:
        x = dense(w, b, x)
    return x


def loss(params, x, y):
    """
    Example inputs:
        params: [(f32[8,8], f32[8]), (f32[8,8], f32[8])]
        x: f32[4,8]
        y: f32[4,8]
    """

    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry.sum()

    _, sums = jax.lax.scan(step, jnp.zeros(8), y)
    "😋"; out = block(params, x) - jnp.cosh(y)
    return jnp.mean(out**2) + sums.sum()


def unused(x):
    return block([], x)
'''


class Shown:
    """A virtual document that the client shows, with places in it by text."""

    def __init__(self, editor: Editor, uri: str, text: str) -> None:
        self.editor = editor
        self.uri = uri
        self.lines = text.split("\n")

    def place(self, marked: str) -> types.TextDocumentPositionParams:
        """Return the place of `|` in a piece of a line."""
        piece = marked.replace("|", "", 1)
        for number, line in enumerate(self.lines):
            if piece in line:
                before = line[: line.index(piece) + marked.index("|")]
                column = len(before.encode("utf-16-le")) // 2
                return types.TextDocumentPositionParams(
                    on(self.uri), types.Position(number, column)
                )
        raise AssertionError(f"no line with {piece}")

    def text_of(self, range: types.Range) -> str:
        assert range.start.line == range.end.line
        units = self.lines[range.start.line].encode("utf-16-le")
        return units[2 * range.start.character : 2 * range.end.character].decode("utf-16-le")

    async def definition(self, marked: str) -> list[types.Location]:
        place = self.place(marked)
        params = types.DefinitionParams(place.text_document, place.position)
        answer = await self.editor.text_document_definition_async(params)
        assert isinstance(answer, list)
        return [location for location in answer if isinstance(location, types.Location)]

    async def hover(self, marked: str) -> str | None:
        place = self.place(marked)
        params = types.HoverParams(place.text_document, place.position)
        answer = await self.editor.text_document_hover_async(params)
        if answer is None:
            return None
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    async def implementations(self, marked: str) -> list[types.Location]:
        place = self.place(marked)
        params = types.ImplementationParams(place.text_document, place.position)
        answer = await self.editor.text_document_implementation_async(params)
        assert isinstance(answer, list)
        return [location for location in answer if isinstance(location, types.Location)]


@pytest.fixture(scope="module")
def source(vscode: Editor, project: Path) -> Shown:
    uri = (project / "model.py").as_uri()
    vscode.open(uri, MODEL)
    return Shown(vscode, uri, MODEL)


async def show(editor: Editor, source: Shown, kind: str, function: str = "loss") -> Shown:
    """Open a virtual document, as a client does that synchronizes its text."""
    shown = await editor.execute("jaxsight.show", source.uri, function, kind)
    document = types.TextDocumentItem(shown["uri"], kind, 1, shown["text"])
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    return Shown(editor, shown["uri"], shown["text"])


async def test_features_are_registered_for_our_documents_only(
    vscode: Editor, project: Path
) -> None:
    capabilities = vscode.server_capabilities
    assert capabilities.definition_provider is None
    (sent,) = await vscode.receive(types.CLIENT_REGISTER_CAPABILITY)
    selectors = {
        registration.method: registration.register_options["documentSelector"]
        for registration in sent.registrations
        if "documentSelector" in (registration.register_options or {})
    }
    assert {"scheme": "jaxsight-hlo"} in selectors["textDocument/definition"]
    for method in ("definition", "references"):
        languages = {entry.get("language") for entry in selectors[f"textDocument/{method}"]}
        assert languages == {None, "jaxpr", "stablehlo", "hlo", "kernels"}


async def test_definitions_lead_to_equations_and_from_those_to_python(
    vscode: Editor, source: Shown
) -> None:
    jaxpr = await show(vscode, source, "jaxpr")
    (defined,) = await jaxpr.definition("tanh |")
    assert defined.uri == jaxpr.uri
    assert " = add " in jaxpr.lines[defined.range.start.line]
    (written,) = await jaxpr.definition("ta|nh")
    assert written.uri == source.uri
    assert source.text_of(written.range) == "jnp.tanh(carry + row)"
    (cosh,) = await jaxpr.definition(" cos|h ")
    assert cosh.range.start == source.place("|jnp.cosh(y)").position


async def test_an_expression_leads_to_its_equation_and_instruction(
    vscode: Editor, source: Shown
) -> None:
    jaxpr, stablehlo, hlo = [
        await show(vscode, source, kind) for kind in ("jaxpr", "stablehlo", "hlo")
    ]
    shown = {document.uri: document for document in (jaxpr, stablehlo, hlo)}
    found = await source.implementations("jnp.co|sh(y)")
    lines = {shown[at.uri].lines[at.range.start.line].split(" = ")[0].strip() for at in found}
    by_uri = {at.uri: shown[at.uri].text_of(at.range) for at in found}
    assert set(by_uri) == set(shown), lines
    assert " cosh " in by_uri[jaxpr.uri]
    assert "cosh" in by_uri[stablehlo.uri]
    elsewhere = await jaxpr.implementations(" cos|h ")
    assert {at.uri for at in elsewhere} == {stablehlo.uri, hlo.uri}
    assert await source.implementations("return bl|ock([], x)") == []


async def test_references_and_highlights_respect_regions(vscode: Editor, source: Shown) -> None:
    stablehlo = await show(vscode, source, "stablehlo")
    place = stablehlo.place("stablehlo.tanh %|")
    references = await vscode.text_document_references_async(
        types.ReferenceParams(
            types.ReferenceContext(include_declaration=True), place.text_document, place.position
        )
    )
    highlights = await vscode.text_document_document_highlight_async(
        types.DocumentHighlightParams(place.text_document, place.position)
    )
    assert references is not None
    assert highlights is not None
    assert [at.range for at in references] == [at.range for at in highlights]
    assert [at.kind for at in highlights] == [
        types.DocumentHighlightKind.Write,
        types.DocumentHighlightKind.Read,
    ]
    assert len({stablehlo.text_of(at.range) for at in references}) == 1


async def test_operations_are_explained_where_the_mouse_is(vscode: Editor, source: Shown) -> None:
    jaxpr = await show(vscode, source, "jaxpr")
    explained = await jaxpr.hover("d|ot_general[")
    assert explained == (
        "`dot_general`: sums products over contracted axes (matrix multiplication, einsum); batch axes come first "
        "([reference](https://docs.jax.dev/en/latest/_autosummary/jax.lax.dot_general.html))"
    )
    assert await jaxpr.hover("dimension|_numbers=") is None
    hlo = await show(vscode, source, "hlo")
    explained = await hlo.hover(" wh|ile(")
    assert explained is not None
    assert "https://openxla.org/xla/operation_semantics#while" in explained


async def test_operations_are_explained_in_files(vscode: Editor, project: Path) -> None:
    text = "module @m {\n  func.func public @main() {\n    %0 = stablehlo.iota dim = 0 : tensor<4xi32>\n  }\n}\n"
    uri = (project / "program.mlir").as_uri()
    vscode.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "stablehlo", 1, text))
    )
    explained = await Shown(vscode, uri, text).hover("stable|hlo.iota")
    assert explained is not None
    assert "https://openxla.org/stablehlo/spec#iota" in explained
