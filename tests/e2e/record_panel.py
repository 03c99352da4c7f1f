"""Record the answers that the panel's own tests show; run by hand: `python -m
tests.e2e.record_panel`.

Writes `vscode-extension/panel/test/nested.json`: the panel and the texts of `nested` on an H100, by
JAX 0.10.2 (another version numbers the kernels otherwise).
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from tests.e2e.editor import VSCODE, opened

TESTS = Path(__file__).parents[2] / "vscode-extension" / "panel" / "test"
PROJECT = "/project"
SOURCE = '''\
import jax
import jax.numpy as jnp
def nested(m, v):
    """
    Example inputs:
        m: f32[64, 64]
        v: f32[64]
    """
    def inner(_, v):
        return jnp.tanh(m @ v) / jnp.sum(v)

    def step(v, _):
        w = jax.lax.fori_loop(0, 3, inner, v)
        w = jax.lax.cond(jnp.sum(w) > 0, lambda w: jnp.sort(w), lambda w: -jnp.cumsum(w), w)
        return w, jnp.max(w)

    v, peaks = jax.lax.scan(step, v, length=7)
    return v / jnp.linalg.norm(v), peaks
'''


async def answers(root: Path) -> str:
    """Return a server's answers to an editor in a folder as JSON, with one that is on no
    machine.
    """
    uri = (root / "nested.py").as_uri()
    async with opened(VSCODE, root, target="cuda:h100") as editor:
        editor.open(uri, SOURCE)
        shown = await editor.ask("jaxsight/panel", uri=uri, function="nested")
        texts = {
            kind: await editor.linked_content(shown["documents"][kind]) for kind in ("jaxpr", "hlo")
        }
    data = {"shown": shown, "texts": texts}
    recorded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return recorded.replace(str(root), PROJECT)


if __name__ == "__main__":
    os.environ["JAXSIGHT_TRUST"] = "always"
    with tempfile.TemporaryDirectory() as folder:
        recorded = asyncio.run(answers(Path(folder).resolve()))
    (TESTS / "nested.json").write_text(recorded + "\n", encoding="utf-8")
