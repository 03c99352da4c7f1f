"""Kernels and barriers as an editor shows them: what `tests/fixtures/kernels` has written into the
source.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jax
import pytest
import pytest_asyncio

from jaxsight.features.named_function import view_of
from jaxsight.session import Session
from tests.features.rendering import with_hints, without_hints
from tests.features.test_fixtures import FIXTURES, check
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

TARGETS = {"h100": "cuda:h100", "cpu": "cpu", "h100x8": "cuda:h100x8"}
RELEASE = (0, 12)
"""What XLA fuses depends on its version: the fixtures are of this one."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(jax.__version_info__[:2] != RELEASE, reason="the figures are of JAX 0.12")
@pytest.mark.parametrize("name", sorted(file.stem for file in (FIXTURES / "kernels").glob("*.py")))
async def test_kernels_and_barriers(name: str, session: Session, update_fixtures: bool) -> None:
    file = FIXTURES / "kernels" / f"{name}.py"
    target = TARGETS[name.rpartition("_")[2]]
    hints: dict[str, object] = {"shapes": target.endswith("x8")}
    settings = {"python": sys.executable, "target": target, "inlayHints": hints}
    session.configure([str(FIXTURES)], settings)
    source = without_hints(file.read_text(encoding="utf-8"))
    session.open(str(file), source)
    await session.background.settle(str(file), patience=240)
    shown = await session.hints(str(file), wait=True)
    session.close(str(file))
    check(file, with_hints(source, shown), update_fixtures)


EDITED = '''\
import jax.numpy as jnp


def mean(x):
    """
    Example inputs:
        x: f32[64, 32]
    """
    return x / jnp.sum(x, axis=1, keepdims=True)
'''


async def labels(session: Session, path: Path) -> list[str]:
    return [hint.label for hint in await session.hints(str(path), wait=True)]


@pytest.mark.usefixtures("cold_cache")
async def test_an_edit_that_moves_lines_compiles_nothing(tmp_path: Path) -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    session.configure([str(tmp_path)], settings)
    path = tmp_path / "model.py"
    session.open(str(path), EDITED)
    before = await labels(session, path)
    assert any(label.startswith("▣") for label in before)
    count = session.engine.programs.compiles
    session.change(
        str(path), "# a comment\n\n" + EDITED.replace("    return", "    # why\n    return")
    )
    assert await labels(session, path) == before
    session.change(str(path), EDITED.replace("mean", "mean"))
    assert await labels(session, path) == before
    assert session.engine.programs.compiles == count, "only the text moved"
    session.change(str(path), EDITED.replace("x / jnp", "2 * x / jnp"))
    await labels(session, path)
    assert session.engine.programs.compiles > count
    await session.aclose()


@pytest.mark.usefixtures("cold_cache")
async def test_a_second_session_answers_without_compiling(tmp_path: Path) -> None:
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    path = tmp_path / "model.py"
    text = EDITED.replace("mean", "mean_of_a_second_session")
    shown = []
    for is_first in (True, False):
        session = session_without_spare()
        session.configure([str(tmp_path)], settings)
        session.open(str(path), text)
        shown.append(await labels(session, path))
        assert (session.engine.programs.compiles > 0) == is_first
        await session.aclose()
    assert shown[0] == shown[1]


async def test_what_changed_since_the_file_was_saved_is_told(tmp_path: Path) -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    session.configure([str(tmp_path)], settings)
    path = tmp_path / "model.py"
    session.open(str(path), EDITED)
    (before,) = [label for label in await labels(session, path) if label.startswith("▣")]
    assert "→" not in before
    changed = EDITED.replace("return x /", "return jnp.sort(x) /")
    session.change(str(path), changed)
    (after,) = [label for label in await labels(session, path) if label.startswith("▣")]
    assert re.search(r" · cpu \(kernels \d → \d\)", after)
    session.saved(str(path))
    (saved,) = [label for label in await labels(session, path) if label.startswith("▣")]
    assert after.partition(" · ")[0] == saved.partition(" · ")[0]
    assert "→" not in saved
    await session.aclose()


SLOW = '''\
import jax.numpy as jnp


def sorted_often(x):
    """
    Example inputs:
        x: f32[64, 32]
    """
    for axis in [0, 1] * 100:
        x = jnp.sort(jnp.sin(x), axis=axis)
    return x
'''


async def test_kernels_of_an_older_text_are_marked_once_the_new_one_is_traced(
    tmp_path: Path,
) -> None:
    session = Session()
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    session.configure([str(tmp_path)], settings)
    path = tmp_path / "model.py"
    session.open(str(path), SLOW, in_background=False)
    (before,) = [label for label in await labels(session, path) if label.startswith("▣")]
    session.change(str(path), SLOW.replace("sin", "cos"))
    assert not (await view_of(session.engine, str(path), "sorted_often")).stale
    hints = await session.hints(str(path))
    assert [h.label for h in hints if h.label.startswith("▣")] == [before.replace("▣ ", "▣ ~")]
    await session.aclose()
