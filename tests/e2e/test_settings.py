"""Settings and trust, from an editor to what it shows."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from tests.e2e.editor import SERVER, VSCODE, introduction, opened, started
from tests.e2e.programs import FUSED, IDENTITY
from tests.marks import Mark
from tests.quiet import QUIET


@pytest.mark.slow
async def test_each_folder_has_its_own_settings(tmp_path: Path) -> None:
    roots = []
    for size in (3, 5):
        root = tmp_path / f"project{size}"
        await asyncio.to_thread(root.mkdir)
        settings = f"[tool.jaxsight.sizes]\nB = {size}\n"
        await asyncio.to_thread((root / "pyproject.toml").write_text, settings)
        roots.append(root)
    async with opened(VSCODE, *roots) as editor:
        for root, size in zip(roots, (3, 5), strict=True):
            uri = (root / "f.py").as_uri()
            editor.open(uri, IDENTITY.format(type="f32[B]"))
            assert f"f(x: f32[{size}]) -> f32[{size}]" in await editor.hover_text(uri, 0, 4)


async def test_hover_asked_before_the_settings_came_is_answered_by_them(tmp_path: Path) -> None:
    uri = (tmp_path / "model.py").as_uri()
    params = introduction("Neovim 0.12", tmp_path)
    params.initialization_options = None
    settings = {**QUIET, "python": sys.executable, "sizes": {"B": 7}}
    async with started(SERVER) as editor:
        editor.set_configuration(settings, section="jaxsight")
        editor.capabilities = params.capabilities
        introducing = asyncio.create_task(editor.initialize_async(params))
        await asyncio.sleep(0)  # it is sent, and its answer is not waited for
        editor.initialized(types.InitializedParams())
        editor.open(uri, IDENTITY.format(type="f32[B]\n        where B=3"))
        assert "f(x: f32[3]) -> f32[3]" in await editor.hover_text(uri, 0, 4)
        assert (await introducing).capabilities


async def test_untrusted_code_runs_only_after_it_is_trusted(tmp_path: Path) -> None:
    mark = Mark(tmp_path / "ran")
    uri = (tmp_path / "f.py").as_uri()
    text = f"{mark.statement}  # jaxsight: always\n"
    text += 'def f(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    return x\n'
    async with opened(VSCODE, tmp_path, trusted=False) as editor:
        editor.open(uri, text)
        assert "not trusted" in await editor.hover_text(uri, 1, 4)
        assert not mark.has_run
        editor.protocol.notify("jaxsight/trust", {"trusted": True})
        assert "f(x: f32[8]) -> f32[8]" in await editor.hover_text(uri, 1, 4)
        assert mark.has_run


async def test_kernels_and_barriers_are_shown_where_they_are(tmp_path: Path) -> None:
    uri = (tmp_path / "fused.py").as_uri()
    shown = {"inlayHints": {"shapes": False}, "target": "cpu"}
    async with opened(VSCODE, tmp_path, **shown) as editor:
        editor.open(uri, FUSED)
        labels: list[str] = []
        refreshes = 0
        # The editor asks again whenever it is told that there is more: the memory comes last.
        while not labels or "…" in labels[0]:
            refreshes += 1
            await editor.receive("workspace/inlayHint/refresh", refreshes)
            labels = [str(hint.label) for hint in await editor.hints(uri)]
        assert labels[0].startswith("▣ 2 kernels · temp 1 MiB · cpu")
        assert labels[1:] == ["⊣ reduction"]
        hover = await editor.hover_text(uri, 3, 6)
        row = next(line for line in hover.split("\n") if line.startswith("| cpu | 2 | 2 |"))
        assert "| 1 MiB |" in row
        assert row.endswith("| on the device |")
        hover = await editor.hover_text(uri, 9, 24)
        assert "kernel" in hover
        assert "cpu" in hover
        for kind in ("stablehlo", "hlo", "kernels"):
            document = await editor.execute("jaxsight.show", uri, "total", kind)
            content = await editor.linked_content(document["uri"])
            assert content["text"] == document["text"]
            assert any(link["range"]["start"]["line"] == 9 for link in content["links"])
