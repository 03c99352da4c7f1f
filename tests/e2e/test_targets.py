"""Targets in an editor, with the real engine: what is listed, a compiler that is missing, and its
installation from a folder of packages.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.compiler.packages import local_index
from tests.e2e.editor import SERVER, VSCODE, Editor, introduction, started
from tests.e2e.programs import FUSED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux")


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without compilers, and an index with those that were installed before."""
    for name, value in local_index(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "compilers"
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(folder))
    folder.mkdir()
    return folder


@asynccontextmanager
async def knowing(root: Path, **options: Any) -> AsyncIterator[Editor]:
    """VS Code with the extension, which shows kernels."""
    params = introduction(VSCODE, root, inlayHints={"shapes": False}, **options)
    params.capabilities.experimental = {"jaxsight": True}
    async with started(SERVER) as editor:
        await editor.initialize_session(params)
        yield editor
        await editor.shutdown_session()


async def head(editor: Editor, uri: str, says: str) -> types.InlayHint:
    """Return the hint after a function's signature, once it says something."""
    count = 0
    while True:
        for hint in await editor.hints(uri):
            label = hint.label
            text = label if isinstance(label, str) else "".join(part.value for part in label)
            if says in text:
                return hint
        count += 1
        await editor.receive(types.WORKSPACE_INLAY_HINT_REFRESH, count)


def statuses(editor: Editor) -> list[tuple[str, str]]:
    """Return the targets that the server told of files, each with what it lacks."""
    received = [params for name, params in editor.received if name == "jaxsight/fileStatus"]
    return [(params.target, params.problem) for params in received]


@pytest.mark.slow
async def test_a_missing_compiler_is_told_installed_and_used(
    compilers: Path, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    uri = (root / "fused.py").as_uri()
    async with knowing(root, target="cuda:h100") as editor:
        editor.open(uri, FUSED)
        hint = await head(editor, uri, "cuda:h100: compiler not installed")
        [part] = hint.label
        assert isinstance(part, types.InlayHintLabelPart)
        assert part.command is not None
        assert list(part.command.arguments or ()) == ["cuda", str(root / "fused.py")]
        resolved = await editor.inlay_hint_resolve_async(hint)
        assert isinstance(resolved.tooltip, types.MarkupContent)
        assert "`jaxsight targets install cuda`" in resolved.tooltip.value
        await editor.until(lambda: statuses(editor)[-1:] == [("cuda:h100", "missing")])

        offers = await editor.ask("jaxsight/targets", uri=uri)
        by_name = {offer["target"]: offer for offer in offers["targets"]}
        assert [offer["group"] for offer in offers["targets"]] == sorted(
            (offer["group"] for offer in offers["targets"]),
            key=["here", "gpu", "tpu", "several", "ssh"].index,
        )
        assert by_name["cuda:h100"]["state"] == "needs"
        assert by_name["cuda:h100"]["detail"] == "compiler not installed: about 290 MB to download"
        assert {"cuda:h100x8", "tpu:v5e:4x4", "cpu:8"} <= by_name.keys()

        assert not await asyncio.to_thread(lambda: list(compilers.iterdir()))
        editor.choose = lambda params: params.actions[-1]
        await editor.execute(part.command)
        await head(editor, uri, "2 kernels")
        await editor.until(lambda: statuses(editor)[-1:] == [("cuda:h100", "")])
        offers = await editor.ask("jaxsight/targets", uri=uri)
        assert offers["compilers"][0]["installed"] == [offers["jax"]]
        assert {offer["target"]: offer["state"] for offer in offers["targets"]}[
            "cuda:h100x8"
        ] == "ready"
