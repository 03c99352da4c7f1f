"""The kernels and the jaxpr of a function by the functions and modules that it calls."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.printed_programs import jaxpr
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET
from tests.sessions import session_without_spare

SOURCE = '''\
import jax
import jax.numpy as jnp


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x, p):
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    return jax.nn.softmax(q @ k.T) @ v


class Block:
    def __init__(self, p):
        self.p = p

    def forward(self, x):
        return x + attention(norm(x), self.p)


def loss(params, x):
    for p in params:
        x = Block(p).forward(x)
    return jnp.mean(x**2)


def make():
    return [{name: jnp.zeros((16, 16)) for name in "qkv"} for _ in range(2)]


def train(params, x):
    """
    Example inputs:
        params = make()
        x: f32[8,16]
    """
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
'''

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, str]]:
    path = tmp_path_factory.mktemp("modules") / "model.py"
    session = session_without_spare()
    session.configure([str(path.parent)], {**QUIET, "python": sys.executable, "target": "cpu"})
    session.open(str(path), SOURCE)
    yield session, str(path)
    await session.aclose()


async def test_a_list_of_kernels_has_sections(opened: tuple[Session, str]) -> None:
    session, path = opened
    text = (await session.show(path, "train", "kernels")).text
    lines = text.split("\n")
    sections = [line for line in lines if line.startswith("# ")]
    assert any(
        re.fullmatch(r"# loss/Block\.forward/attention · \d+ kernels? · .*", line)
        for line in sections
    )
    listed = sum(int(count) for count in re.findall(r"^# .* · (\d+) kernel", text, re.MULTILINE))
    assert listed == sum(line.startswith("  kernel ") for line in lines)


async def test_a_jaxpr_has_sections(opened: tuple[Session, str]) -> None:
    session, path = opened
    shown = await session.show(path, "train", "jaxpr")
    lines = shown.text.split("\n")
    program = jaxpr.read(shown.text)
    sections = {line.strip() for line in lines if line.strip().startswith("#")}
    assert sections >= {"# loss/Block.forward/attention", "# loss/Block.forward/norm", "# loss"}
    # Comments are no equations, and links are still those of their lines.
    assert not any(
        lines[program.line(statement.start)].strip().startswith("#")
        for statement in program.root.blocks[0].statements
    )
    linked = next(link for link in shown.links if link.path == "0")
    assert lines[linked.line].strip().partition(" = ")[2].startswith("reduce_sum")


async def test_the_hover_of_a_large_program_sums_kernels(opened: tuple[Session, str]) -> None:
    session, path = opened
    await session.show(path, "train", "kernels")
    hover = await session.hover(path, position("train(params"))
    assert hover is not None
    found = re.findall(
        r"^\* (loss/Block.forward/\w+): (\d+) kernels, [\d.]+ [KM]?i?B",
        hover.markdown,
        re.MULTILINE,
    )
    assert {name for name, _ in found} == {
        "loss/Block.forward/attention",
        "loss/Block.forward/norm",
    }
    assert "params: list · 6 parameters" not in hover.markdown
    assert "[0..1]  2 × {k: f32[16,16], q: f32[16,16], v: f32[16,16]}" in hover.markdown


def position(text: str) -> Position:
    line = next(line for line in SOURCE.split("\n") if text in line)
    return Position(SOURCE.split("\n").index(line), line.index(text))


async def test_text_of_a_workspace_is_inert(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    calls = "\n".join(f"        x = jnp.sin(x) + {n} * x.sum()" for n in range(25))
    source = (
        "import jax, jax.numpy as jnp\n\n\ndef f(x):\n"
        '    """\n    Example inputs:\n        x: f32[8]\n    """\n'
        '    with jax.named_scope("a\\x1b[31m\\n![i](http://x)`"):\n' + calls + "\n"
        "    return jnp.cos(x)\n"
    )
    session = session_without_spare()
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable, "target": "cpu"})
    session.open(str(path), source)
    for what in ("jaxpr", "kernels"):
        text = (await session.show(str(path), "f", what)).text
        assert "\x1b" not in text
        assert not any(line.startswith("![i]") for line in text.split("\n"))
    hover = await session.hover(str(path), Position(3, 4))
    assert hover is not None
    assert "\x1b" not in hover.markdown
    assert "![i](" not in hover.markdown
    await session.aclose()
