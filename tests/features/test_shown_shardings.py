"""Collectives and the compiler's shardings as an editor shows them, on 8 simulated devices."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.features.rendering import cursor, with_hints
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL_REDUCE = '''\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def product(x, w, v):
    """
    Example inputs:
        mesh = mesh
        x: f32[64@data, 128]
        w: f32[128, 256@model]
        v: f32[256@model, 128]
    """
    hidden = jnp.tanh(x @ w)
    result = hidden @ v
    return result
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


def opened(session: Session, folder: Path, text: str, target: str = "cpu:8", **hints: bool) -> str:
    settings = {"python": sys.executable, "target": target, "inlayHints": hints}
    session.configure([str(folder)], settings)
    path = str(folder / "model.py")
    session.open(path, text)
    return path


async def test_a_collective_is_at_the_line_it_is_for(session: Session, tmp_path: Path) -> None:
    path = opened(session, tmp_path, ALL_REDUCE, shapes=False)
    hints = await session.hints(path, wait=True)
    (hint,) = [hint for hint in hints if hint.label.startswith("⇄")]
    assert hint.label == "⇄ all-reduce 16 KiB over model"
    assert hint.range.start.line == ALL_REDUCE.splitlines().index("    result = hidden @ v")
    assert hint.tooltip.splitlines() == [
        hint.tooltip.splitlines()[0],
        "",
        "* inserted by the partitioner (Shardy) for `hidden @ v`",
        (
            "* from `f32[64@data,256@model]` and `f32[256@model,128]` to `f32[64@data,128]`: "
            "model divides operands, but not the result"
        ),
        "* time unknown, not overlapped",
        "* groups of devices: \\{0, 1, 2, 3\\}, \\{4, 5, 6, 7\\}",
        "",
        hint.tooltip.splitlines()[-1],
    ]
    assert hint.tooltip.splitlines()[-1].startswith("8 devices of ")
    assert not any("collective" in hint.label for hint in hints if hint.label.startswith("⊣"))
    session.close(path)


async def test_without_them_a_barrier_names_the_reason(session: Session, tmp_path: Path) -> None:
    path = opened(session, tmp_path, ALL_REDUCE, shapes=False, collectives=False)
    labels = [hint.label for hint in await session.hints(path, wait=True)]
    assert not any(label.startswith("⇄") for label in labels)
    assert any("collective" in label for label in labels if label.startswith("⊣"))
    session.close(path)


async def test_the_choice_of_the_compiler_follows_the_type(
    session: Session, tmp_path: Path
) -> None:
    path = opened(session, tmp_path, ALL_REDUCE, barriers=False, collectives=False)
    shown = with_hints(ALL_REDUCE, await session.hints(path, wait=True))
    assert "    hidden⟦: f32[64,256] @ (data, model)⟧ = " in shown
    assert "    result⟦: f32[64,128] @ (data, -)⟧ = " in shown
    session.close(path)


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        (
            "hid$0den = jnp.tanh",
            "`f32[64@data,256@model]` · per device `f32[32,64]` · the compiler's choice (Shardy)",
        ),
        (
            "return res$0ult",
            (
                "`f32[64@data,128]` · per device `f32[32,128]` · 4 copies · "
                "the compiler's choice (Shardy)"
            ),
        ),
    ],
)
async def test_a_hover_has_the_choice_of_the_compiler(
    session: Session, tmp_path: Path, marked: str, words: str
) -> None:
    text, position = cursor(ALL_REDUCE.replace(marked.replace("$0", ""), marked))
    path = opened(session, tmp_path, text)
    await session.hints(path, wait=True)
    hover = await session.hover(path, position)
    assert hover is not None
    assert words in hover.markdown
    assert "```text\n┌" in hover.markdown
    session.close(path)


async def test_a_hover_of_the_function_lists_its_collectives(
    session: Session, tmp_path: Path
) -> None:
    path = opened(session, tmp_path, ALL_REDUCE)
    await session.hints(path, wait=True)
    line = ALL_REDUCE.splitlines().index("def product(x, w, v):")
    hover = await session.hover(path, Position(line, 5))
    assert hover is not None
    assert "* mesh: data=2, model=4\n" in hover.markdown
    assert (
        "* communication: 1 collective, 16 KiB per device, time unknown, not overlapped"
        in hover.markdown
    )
    assert "| all-reduce | 16 KiB | over model | ? | 17 |" in hover.markdown
    session.close(path)


SQUARE = '''\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def placed(a, by):
    return jax.lax.with_sharding_constraint(a, NamedSharding(mesh, P(*by)))


def both(x):
    """
    Example inputs:
        x: f32[64, 64]
    """
    return placed(jnp.sin(x), ("x", None)) + placed(jnp.cos(x), (None, "x"))
'''


async def test_an_expression_with_two_shardings_has_none(session: Session, tmp_path: Path) -> None:
    constraint = "with_sharding_constraint(a, NamedSharding(mesh, P(*by))$0)"
    text, position = cursor(SQUARE.replace(constraint.replace("$0", ""), constraint))
    path = opened(session, tmp_path, text)
    await session.hints(path, wait=True)
    hover = await session.hover(path, position)
    assert hover is not None
    assert "choice" not in hover.markdown
    session.close(path)


async def test_a_target_of_more_devices_says_how_many_are_used(
    session: Session, tmp_path: Path
) -> None:
    text = SQUARE.replace("(8,)", "(4,)")
    path = opened(session, tmp_path, text, shapes=False)
    hints = await session.hints(path, wait=True)
    totals = [hint for hint in hints if hint.label.startswith("▣")]
    (total,) = totals
    assert total.label.removesuffix(" …").endswith("· 4 of cpu:8")
    assert all("4 devices of" in h.tooltip for h in hints if h.label.startswith("⇄"))
    session.close(path)


@pytest.mark.parametrize(
    ("edited", "marks"),
    [("return jnp.sort(result) * 2", {"~@", "@"}), ("return jnp.sort(resu)", {"~@"})],
)
async def test_after_an_edit_the_last_choice_stays_and_is_marked(
    session: Session, tmp_path: Path, edited: str, marks: set[str]
) -> None:
    path = opened(session, tmp_path, ALL_REDUCE, barriers=False, collectives=False)
    await session.hints(path, wait=True)
    session.change(path, ALL_REDUCE.replace("return result", edited))
    document = await session.engine.documents.read(path)
    assert document is not None
    await session.engine.traces.views(document, None)
    labels = {hint.label for hint in await session.hints(path)}
    # A program that is compiled at once needs no mark.
    assert labels & {f": f32[64,256] {mark} (data, model)" for mark in marks}
    session.close(path)


async def test_documents_mark_collectives(session: Session, tmp_path: Path) -> None:
    path = opened(session, tmp_path, ALL_REDUCE)
    listed = (await session.show(path, "product", "kernels")).text
    assert "mesh: data=2, model=4\n" in listed
    assert "communication: 1 collective, 16 KiB per device, time unknown, not overlapped" in listed
    (line,) = [line for line in listed.splitlines() if line.startswith("⇄")]
    assert "all-reduce (add) over model, 16 KiB on each device; inserted by the partition" in line
    hlo = (await session.show(path, "product", "hlo")).text
    (line,) = [line for line in hlo.splitlines() if "⇄" in line]
    comment = "  // ⇄ all-reduce 16 KiB over model, inserted by the partitioner"
    assert "all-reduce(" in line
    assert line.endswith(comment)
    session.close(path)
