"""The whole way with the real engine: an editor's messages in, shapes of real JAX code out."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.client import Client, at, connected, on, recorded, span
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

ATTENTION = '''\
import jax
import jax.numpy as jnp


def attention(q, k, v):
    """Scaled dot-product attention.

    Example inputs:
        q, k, v: f32[4, 128, 8, 64]

    Example inputs (decode):
        q: f32[4, 1, 8, 64]
    """
    s = "😋"; scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def branch(x):
    """
    Example inputs:
        x: f32[3]
    """
    if x.sum() > 0: return x
    return -x


def plain(x, *, scale=2.0):
    return x * scale
'''

UNITS_OF_THE_EMOJI = {"vscode_139": 2, "neovim_0.11.4": 4, "emacs_30.1": 1}


@asynccontextmanager
async def editor(name: str, *roots: Path, **options: Any) -> AsyncIterator[Client]:
    """A client by its recording, in folders of the test, with this Python as the user's."""
    folders = [{"uri": root.as_uri(), "name": root.name} for root in roots]
    async with connected() as client:
        await client.initialize(
            recorded(name)["initialize"],
            rootUri=folders[0]["uri"],
            rootPath=str(roots[0]),
            workspaceFolders=folders,
            initializationOptions={**QUIET, "python": sys.executable, **options},
        )
        yield client


def words(hover: Any) -> str:
    assert hover is not None
    text: str = hover["contents"]["value"]
    return text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vscode(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Client, Path]]:
    root = tmp_path_factory.mktemp("project").resolve()
    async with editor("vscode_139", root) as client:
        yield client, root


@pytest.mark.parametrize("name", sorted(UNITS_OF_THE_EMOJI))
async def test_every_client_sees_jaxpr_shapes_and_errors_in_its_own_columns(
    name: str, tmp_path: Path
) -> None:
    uri = (tmp_path / "model.py").as_uri()
    column = len('    s = "') + UNITS_OF_THE_EMOJI[name] + len('"; ')
    async with editor(name, tmp_path) as client:
        client.open(uri, ATTENTION)
        hover = await client.request("textDocument/hover", on(uri, 4, 6))
        assert "-> f32[4,128,8,64]" in words(hover)
        assert "lambda ;" in words(hover)
        assert hover["range"] == span(4, 4, 13)
        hover = await client.request("textDocument/hover", on(uri, 13, column + 2))
        assert "scores: f32[4,8,128,128]" in words(hover)
        assert hover["range"] == span(13, column, column + 6)
        asked = {"textDocument": {"uri": uri}, "range": {"start": at(0, 0), "end": at(30, 0)}}
        hints = await client.request("textDocument/inlayHint", asked)
        assert [(h["position"], h["label"]) for h in hints] == [
            (at(13, column + 6), ": f32[4,8,128,128]"),
            (at(14, 11), ": f32[4,8,128,128]"),
        ]
        if "diagnosticProvider" in client.capabilities:
            report = await client.request("textDocument/diagnostic", asked)
            items = report["items"]
        else:
            items = (await client.heard("textDocument/publishDiagnostics"))[-1]["diagnostics"]
        assert [(item["code"], item["range"]) for item in items] == [("JX401", span(23, 7, 18))]


async def test_lens_switches_to_another_set(vscode: tuple[Client, Path]) -> None:
    client, root = vscode
    uri = (root / "lens.py").as_uri()
    client.open(uri, ATTENTION)
    client.answers["window/showMessageRequest"] = lambda params: params["actions"][1]
    document = {"textDocument": {"uri": uri}}
    lenses = await client.request("textDocument/codeLens", document)
    command = lenses[0]["command"]
    assert lenses[0]["range"] == span(4, 4, 13)
    await client.request("workspace/executeCommand", command)
    hover = await client.request("textDocument/hover", on(uri, 4, 6))
    assert "-> f32[4,1,8,64]" in words(hover)
    (after, *_) = await client.request("textDocument/codeLens", document)
    assert "decode" in after["command"]["title"]
    await client.heard("workspace/codeLens/refresh")


async def test_action_adds_a_section_in_which_names_are_completed(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    uri = (root / "action.py").as_uri()
    client.open(uri, "def plain(x, *, scale=2.0):\n    return x * scale\n", version=3)
    here = {"textDocument": {"uri": uri}, "range": span(0, 5, 5)}
    (action,) = await client.request(
        "textDocument/codeAction", {**here, "context": {"diagnostics": []}}
    )
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 3}
    (edit,) = change["edits"]
    assert "Example inputs:" in edit["newText"]
    client.edit(uri, 4, {"range": edit["range"], "text": edit["newText"]})
    section = '"""\n    Example inputs:\n        \n    """\n    '
    client.edit(uri, 5, {"text": f"def plain(x, *, scale=2.0):\n    {section}return x * scale\n"})
    found = await client.request("textDocument/completion", on(uri, 3, 8))
    assert {"x", "scale"} <= {item["label"] for item in found["items"]}


async def test_whole_jaxpr_is_a_document_whose_lines_lead_back(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    client.answers["window/showDocument"] = lambda params: {"success": True}
    uri = (root / "made.py").as_uri()
    client.open(uri, ATTENTION)
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    show = next(lens["command"] for lens in lenses if lens["command"]["command"] == "jaxsight.show")
    shown = await client.request("workspace/executeCommand", show)
    (document,) = await client.heard("window/showDocument")
    assert document["uri"] == shown["uri"]
    content = await client.request("workspace/textDocumentContent", {"uri": shown["uri"]})
    assert content["text"] == shown["text"]
    assert "dot_general" in content["text"]
    linked = await client.request("jaxsight/textDocumentContent", {"uri": shown["uri"]})
    lines = linked["text"].splitlines()
    sources = {
        re.split(r"[ \[]", lines[link["line"]].split("= ")[1])[0]: link["range"]["start"]["line"]
        for link in linked["links"]
        if "= " in lines[link["line"]]
    }
    assert sources["dot_general"] in (13, 15)
    assert sources["exp"] == 14
    assert {link["uri"] for link in linked["links"]} == {uri}


async def test_source_of_a_function_opens_beside_it_with_lines_that_lead_back(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    client.answers["window/showDocument"] = lambda params: {"success": True}
    uri = (root / "sourcerized.py").as_uri()
    client.open(uri, ATTENTION)
    asked = {"textDocument": {"uri": uri}, "range": span(14, 4, 11)}
    only = {"diagnostics": [], "only": ["refactor.rewrite.jaxsight.sourcerize"]}
    actions = await client.request("textDocument/codeAction", {**asked, "context": only})
    (action,) = [each for each in actions if "pure lax source" in each["title"]]
    shown = await client.request("workspace/executeCommand", action["command"])
    assert shown["uri"].endswith("/sourcerized.py/attention.lax.py")
    *_, document = await client.heard("window/showDocument")
    assert document["uri"] == shown["uri"]
    linked = await client.request("jaxsight/textDocumentContent", {"uri": shown["uri"]})
    assert linked["text"] == shown["text"]
    lines = linked["text"].splitlines()
    sources = {
        lines[link["line"]].split(" = ")[-1].partition("(")[0]: link["range"]["start"]["line"]
        for link in linked["links"]
    }
    assert sources["lax.exp"] == 14
    assert sources["lax.dot_general"] in (13, 15)
    assert {link["uri"] for link in linked["links"]} == {uri}


async def test_source_of_a_function_is_put_below_it_when_that_is_chosen(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    uri = (root / "below.py").as_uri()
    client.open(uri, ATTENTION, version=5)
    asked = {"textDocument": {"uri": uri}, "range": span(4, 6, 6), "context": {"diagnostics": []}}
    actions = await client.request("textDocument/codeAction", asked)
    (action,) = [each for each in actions if "attention_jax" in each["title"]]
    assert "edit" not in action
    resolved = await client.request("codeAction/resolve", action)
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 5}
    (function,) = change["edits"]  # what it imports the file does already
    line = ATTENTION.splitlines()[15]
    assert function["range"] == span(15, len(line), len(line))
    assert function["newText"].startswith("\n\n\ndef attention_jax(q, k, v):\n")


ROOT = '''\
import jax.numpy as jnp


def root(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)
'''


async def test_quick_fix_is_offered_with_what_it_is_good_for(vscode: tuple[Client, Path]) -> None:
    client, root = vscode
    uri = (root / "fixed.py").as_uri()
    client.open(uri, ROOT, version=7)
    report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    asked = {
        "textDocument": {"uri": uri},
        "range": span(8, 12, 12),
        "context": {"diagnostics": report["items"], "only": ["quickfix"]},
    }
    actions: list[Any] = []
    for _ in range(60):  # each request waits for a moment
        actions = await client.request("textDocument/codeAction", asked)
        if actions:
            break
    (action,) = actions
    assert (action["kind"], action["isPreferred"]) == ("quickfix", True)
    assert action["title"].endswith("(NaN or infinite gradients 6 → 0)")
    (fixed,) = action["diagnostics"]
    assert (fixed["code"], fixed["range"]) == ("JX405", report["items"][0]["range"])
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 7}
    assert "safe = jnp.where(x > 0, x, 1.0)\n    " in [edit["newText"] for edit in change["edits"]]


async def test_gradient_that_there_is_not_says_why(vscode: tuple[Client, Path]) -> None:
    client, root = vscode
    uri = (root / "gradient.py").as_uri()
    client.open(uri, ATTENTION)
    arguments = [uri, "attention", "lax", "grad"]
    command = {"command": "jaxsight.show", "arguments": arguments}
    assert await client.request("workspace/executeCommand", command) is None
    *_, message = await client.heard("window/showMessage")
    assert message["message"].startswith("tracing grad(attention) failed")


async def test_edit_is_answered_from_the_new_text_and_a_broken_one_from_the_old(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    uri = (root / "edit.py").as_uri()
    client.open(uri, ATTENTION)
    await client.request("textDocument/hover", on(uri, 4, 6))
    line = ATTENTION.splitlines()[14]
    client.edit(uri, 2, {"range": span(14, 4, len(line)), "text": "weights = scores[:, :, :7]"})
    hover = await client.request("textDocument/hover", on(uri, 14, 6))
    assert "weights: f32[4,8,7,128]" in words(hover)
    client.edit(uri, 3, {"range": span(1, 0, 0), "text": "# a comment\n"})
    hover = await client.request("textDocument/hover", on(uri, 15, 6))
    assert "weights: f32[4,8,7,128]" in words(hover)
    client.edit(uri, 4, {"range": span(16, 4, 10), "text": "return ("})
    hover = await client.request("textDocument/hover", on(uri, 5, 6))
    assert "stale" in words(hover)


async def test_cells_of_a_notebook_are_one_program(vscode: tuple[Client, Path]) -> None:
    client, root = vscode
    book = (root / "nb.ipynb").as_uri()
    texts = {
        "one": "%matplotlib inline\nimport jax.numpy as jnp",
        "two": 'def f(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    '
        "y = jnp.sin(x)\n    return y.reshape(3)",
    }
    uris = {name: f"vscode-notebook-cell:{root}/nb.ipynb#{name}" for name in texts}
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": book,
                "notebookType": "jupyter-notebook",
                "version": 0,
                "cells": [{"kind": 2, "document": uri} for uri in uris.values()],
            },
            "cellTextDocuments": [
                {"uri": uris[name], "languageId": "python", "version": 1, "text": text}
                for name, text in texts.items()
            ],
        },
    )
    hover = await client.request("textDocument/hover", on(uris["two"], 5, 4))
    assert "y: f32[8]" in words(hover)
    assert hover["range"] == span(5, 4, 5)
    report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uris["two"]}})
    (item,) = report["items"]
    assert item["range"]["start"]["line"] == 6
    assert "reshape" in item["message"]


async def test_cancelled_hover_leaves_the_tracer_to_the_next(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    uri = (root / "loop.py").as_uri()
    client.open(
        uri,
        'def forever(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n'
        "    while True:\n        x + 1\n\n\n"
        'def sane(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    return x\n',
    )
    answer = client.begin("textDocument/hover", on(uri, 0, 6), 4711)
    await client.settled()
    client.notify("$/cancelRequest", {"id": 4711})
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    with pytest.raises(Exception, match="cancel"):
        await answer
    uri = (root / "sane.py").as_uri()
    client.open(uri, ATTENTION)
    hover = await client.request("textDocument/hover", on(uri, 4, 6))
    assert "-> f32[4,128,8,64]" in words(hover)


async def test_what_user_code_prints_is_logged_with_its_file(
    vscode: tuple[Client, Path],
) -> None:
    client, root = vscode
    path = root / "talk.py"
    uri = path.as_uri()
    client.open(
        uri,
        'def talk(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n'
        '    print("hello from the trace")\n    return x\n',
    )
    await client.request("textDocument/hover", on(uri, 0, 6))

    def said() -> list[str]:
        logs = [p["message"] for m, p in client.notifications if m == "window/logMessage"]
        return [line for line in logs if "hello from the trace" in line]

    async with asyncio.timeout(120):
        while not said():
            await client.heard("window/logMessage")
            await client.settled()
    assert said()[0].startswith(str(path))


async def test_each_folder_has_its_own_settings(tmp_path: Path) -> None:
    text = 'def f(x):\n    """\n    Example inputs:\n        x: f32[B]\n    """\n    return x\n'
    roots = []
    for size in (3, 5):
        root = tmp_path / f"project{size}"
        await asyncio.to_thread(root.mkdir)
        settings = f"[tool.jaxsight.sizes]\nB = {size}\n"
        await asyncio.to_thread((root / "pyproject.toml").write_text, settings)
        roots.append(root)
    async with editor("vscode_139", *roots) as client:
        for root, size in zip(roots, (3, 5), strict=True):
            uri = (root / "f.py").as_uri()
            client.open(uri, text)
            hover = await client.request("textDocument/hover", on(uri, 0, 4))
            assert f"f(x: f32[{size}]) -> f32[{size}]" in words(hover)


async def test_hover_asked_before_the_settings_came_is_answered_by_them(tmp_path: Path) -> None:
    uri = (tmp_path / "model.py").as_uri()
    settings = {**QUIET, "python": sys.executable, "sizes": {"B": 7}}
    text = 'def f(x):\n    """\n    Example inputs:\n        x: f32[B]\n        where B=3\n    """\n    return x\n'
    async with connected() as client:
        client.answers["workspace/configuration"] = lambda params: [
            settings if item["section"] == "jaxsight" else None for item in params["items"]
        ]
        params = {**recorded("neovim_0.12.4")["initialize"], "rootUri": tmp_path.as_uri()}
        params["workspaceFolders"] = [{"uri": tmp_path.as_uri(), "name": "x"}]
        asked = client.begin("initialize", params)
        client.notify("initialized", {})
        client.open(uri, text)
        hover = await client.request("textDocument/hover", on(uri, 0, 4))
        assert (await asked)["capabilities"]
        assert "f(x: f32[3]) -> f32[3]" in words(hover)


async def test_untrusted_code_runs_only_after_it_is_trusted(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    uri = (tmp_path / "f.py").as_uri()
    text = (
        f"MARK = open({str(mark)!r}, 'w')  # jaxsight: always\n"
        'def f(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    MARK.close()\n    return x\n'
    )
    async with editor("vscode_139", tmp_path, trusted=False) as client:
        client.open(uri, text)
        hover = await client.request("textDocument/hover", on(uri, 1, 4))
        assert "not trusted" in words(hover)
        assert not await asyncio.to_thread(mark.exists)
        client.notify("jaxsight/trust", {"trusted": True})
        hover = await client.request("textDocument/hover", on(uri, 1, 4))
        assert "f(x: f32[8]) -> f32[8]" in words(hover)
        assert await asyncio.to_thread(mark.exists)


FUSED = """\
import jax.numpy as jnp


def total(x):
    \"\"\"
    Example inputs:
        x: f32[131072, 2]
    \"\"\"
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + jnp.sum(k * x, axis=1, keepdims=True)
"""


async def test_kernels_and_barriers_are_shown_where_they_are(tmp_path: Path) -> None:
    uri = (tmp_path / "fused.py").as_uri()
    wanted = {"inlayHints": {"shapes": False}, "target": "cpu"}
    async with editor("vscode_139", tmp_path, **wanted) as client:
        client.open(uri, FUSED)
        asked = {"textDocument": {"uri": uri}, "range": {"start": at(0, 0), "end": at(30, 0)}}

        client.answers["window/showDocument"] = lambda params: {"success": True}
        found: list[str] = []
        refreshes = 0
        while not found:  # the editor asks again whenever it is told that there is more
            refreshes += 1
            await client.heard("workspace/inlayHint/refresh", refreshes)
            hints = await client.request("textDocument/inlayHint", asked)
            found = [hint["label"] for hint in hints]
        assert found[0].startswith("▣ 2 kernels · 2 launches · temp 1 MiB · cpu")
        assert found[1:] == ["⊣ reduction"]
        hover = words(await client.request("textDocument/hover", on(uri, 3, 6)))
        assert "| cpu | 2 | 2 | 1 MiB | on the device |" in hover
        hover = words(await client.request("textDocument/hover", on(uri, 9, 24)))
        assert "kernel" in hover
        assert "cpu" in hover
        for kind in ("stablehlo", "hlo", "kernels"):
            command = {"command": "jaxsight.show", "arguments": [uri, "total", kind]}
            shown = await client.request("workspace/executeCommand", command)
            content = await client.request("jaxsight/textDocumentContent", {"uri": shown["uri"]})
            assert content["text"] == shown["text"]
            assert any(link["range"]["start"]["line"] == 9 for link in content["links"])
