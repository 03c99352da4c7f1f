"""Printed programs through the protocol: who gets what, columns, edits, and long texts."""

from __future__ import annotations

import asyncio

import pytest

from tests.lsp.client import Client, on, recorded, span

FILE = "file:///home/user/dumps/step.hlo"
HLO = """\
HloModule step

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0), metadata={op_name="😋"}
  %y = f32[4]{0} add(/*😋*/%x, %x)
  ROOT %z = f32[4]{0} negate(%x)
}
"""
PROVIDERS = (
    "definitionProvider", "referencesProvider", "implementationProvider", "documentHighlightProvider",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "given"),
    [
        ("vscode_139", {}, False),  # it registers them for our documents
        ("helix_25.01.1", {}, False),
        ("emacs_30.1", {}, False),
        ("emacs_30.1", {"programs": True}, True),
    ],
)
async def test_only_clients_that_opt_in_get_them_for_all_documents(
    client: Client, name: str, options: dict[str, bool], given: bool
) -> None:
    await client.initialize(recorded(name)["initialize"], initializationOptions=options)
    assert [bool(client.capabilities.get(provider)) for provider in PROVIDERS] == [given] * 4


async def test_a_client_that_registers_them_never_gets_a_definition_of_python(
    client: Client,
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    (sent, *_) = await client.heard("client/registerCapability")
    selectors = {
        entry["method"]: entry["registerOptions"].get("documentSelector", [])
        for entry in sent["registrations"]
    }
    everywhere = {
        method
        for method, selector in selectors.items()
        if any(entry.get("language") in ("python", "*") for entry in selector)
    }
    assert everywhere == {"textDocument/implementation"}


@pytest.mark.parametrize(
    ("name", "before"), [("vscode_139", 2), ("neovim_0.12.4", 4), ("emacs_30.1", 1)]
)
async def test_columns_are_counted_as_the_client_counts_them(
    client: Client, name: str, before: int
) -> None:
    await client.initialize(recorded(name)["initialize"], initializationOptions={"programs": True})
    client.open(FILE, HLO, language="plaintext")  # it is known by its name
    column = len("  %y = f32[4]{0} add(/*") + before + len("*/")
    definition = await client.request("textDocument/definition", on(FILE, 4, column + 1))
    assert [found["range"] for found in definition] == [span(3, 2, 4)]
    params = {**on(FILE, 3, 3), "context": {"includeDeclaration": False}}
    references = await client.request("textDocument/references", params)
    assert span(4, column, column + 2) in [found["range"] for found in references]


async def test_an_edit_of_a_program_is_seen_by_the_next_answer(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(FILE, HLO, language="hlo")
    first = await client.request("textDocument/documentHighlight", on(FILE, 3, 3))
    client.edit(FILE, 2, {"text": HLO.replace("negate(%x)", "negate(%y)")})
    second = await client.request("textDocument/documentHighlight", on(FILE, 3, 3))
    assert [len(first), len(second)] == [5, 4]
    client.notify("textDocument/didClose", {"textDocument": {"uri": FILE}})
    assert await client.request("textDocument/documentHighlight", on(FILE, 3, 3)) is None


async def test_hovers_are_answered_while_a_long_program_is_read(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    body = "".join(f"  %y.{i} = f32[4]{{0}} add(%x, %x)\n" for i in range(20_000))
    client.open(FILE, HLO.replace("  ROOT", f"{body}  ROOT"), language="hlo")
    python = "file:///home/user/project/sample.py"
    client.open(python, "word\n")
    highlights = client.begin("textDocument/documentHighlight", on(FILE, 3, 3))
    hovers = [await client.request("textDocument/hover", on(python, 0, 0)) for _ in range(3)]
    assert all("word" in hover["contents"]["value"] for hover in hovers)
    assert not highlights.done()
    assert len(await asyncio.wait_for(highlights, 60)) == 2_000
