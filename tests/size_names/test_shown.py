"""Hints and hovers show sizes by name, as soon as they are known, unless the setting is off."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Refresh
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '''\
import jax.numpy as jnp


def pairs(x, y):
    """
    Example inputs:
        x: f32[N, D]
        y: f32[M, D]
        where N=4, M=8, D=16
    """
    products = x @ y.T
    return jnp.concatenate([products, products], axis=1)


def numbers(x, w):
    """
    Example inputs:
        x: f32[4, 16]
        w: f32[16, 16]
    """
    batch, width = x.shape
    result = jnp.pad(x @ w, ((1, 0), (0, 0)))
    return result
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = Session()
    root = tmp_path_factory.mktemp("shown")
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


async def labels(session: Session, path: str, *, wait: bool) -> list[str]:
    return [hint.label for hint in await session.hints(path, wait=wait)]


def texts(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*.txt"))


async def refreshed(session: Session) -> None:
    while not isinstance(await asyncio.wait_for(session.events.get(), 120), Refresh):
        pass


async def test_numbers_come_first_and_names_follow_with_a_refresh(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "model.py")
    session.open(path, SOURCE)
    before: list[str] = []
    while (shown := await labels(session, path, wait=False)) != NAMED:
        before += shown
        await refreshed(session)
    assert set(before) <= {*NAMED, ": f32[4,8]", ": f32[5,16]"}
    hints = await session.hints(path, wait=True)
    assert [hint.tooltip for hint in hints] == [
        "`f32[N,M]` · `f32[4,8]`",
        "`f32[batch+1,width]` · `f32[5,16]`",
    ]
    hover = await session.hover(path, Position(3, 5))
    assert hover is not None
    assert "pairs(x: f32[N,D], y: f32[M,D]) -> f32[N,2*M]\n" in hover.markdown
    assert "pairs(x: f32[4,16], y: f32[8,16]) -> f32[4,16]\n" in hover.markdown
    session.close(path)


NAMED = [": f32[N,M]", ": f32[batch+1,width]"]


WRITING = '''\
import jax.numpy as jnp


def saved(x):
    """
    Example inputs:
        x: f32[N, D]
        where N=4, D=16
    """
    with open(f"{FOLDER}/{len(x)}.txt", "w"):
        pass
    y = x + 1
    return y
'''


async def test_no_sizes_have_effects(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "writing.py")
    session.open(path, WRITING.replace("{FOLDER}", str(tmp_path)))
    assert await labels(session, path, wait=True) == []
    assert (await session.report(path)).reported == []
    assert texts(tmp_path) == []
    session.close(path)


async def test_the_setting_switches_names_off(session: Session, tmp_path: Path) -> None:
    hints = {**QUIET["inlayHints"], "sizeNames": False}  # type: ignore[dict-item]
    session.configure([str(tmp_path)], {"inlayHints": hints, "python": sys.executable})
    path = str(tmp_path / "model.py")
    session.open(path, SOURCE)
    assert await labels(session, path, wait=True) == [": f32[4,8]", ": f32[5,16]"]
    session.close(path)
