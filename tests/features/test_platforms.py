"""Code that asks for the platform is traced for each target, and all other code once."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.named_function import compiled_function, view_of
from jaxsight.session import Session
from jaxsight.wire.messages.replies import Traced
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '''\
import jax
import jax.numpy as jnp

MEMORY = jax.devices()[0].memory_stats


def asks(x):
    """
    Example inputs:
        x: f32[4, 8]
    """
    if jax.default_backend() == "gpu":
        return jnp.tanh(x)
    return jnp.sin(x).sum(0)


def remembers(x):
    """
    Example inputs:
        x: f32[4, 8]
    """
    free = MEMORY()

    return x + 2 if free else x - 1
'''
PLAIN = '''\
def plain(x):
    """
    Example inputs:
        x: f32[4, 8]
    """
    return x + 1
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    root = tmp_path_factory.mktemp("project")
    session.configure([str(root)], {**QUIET, "python": sys.executable, "target": "cpu"})
    yield session
    await session.aclose()


async def traced(session: Session, path: Path, function: str) -> Traced:
    view = await view_of(session.engine, str(path), function)
    assert not view.stale
    assert isinstance(view.answer.reply, Traced)
    return view.answer.reply


async def test_what_asks_follows_the_target_and_all_else_is_kept(
    session: Session, tmp_path: Path
) -> None:
    path, plain = tmp_path / "asks.py", tmp_path / "plain.py"
    session.open(str(path), SOURCE)
    session.open(str(plain), PLAIN)
    replies: dict[str, list[Traced]] = {"cpu": [], "cuda:h100": [], "tpu:v5e": []}
    for target in ("cpu", "cuda:h100", "cpu", "tpu:v5e", "cuda:h100"):
        session.choose_target(target)
        reply = await traced(session, path, "asks")
        assert reply.outputs == ("f32[4,8]" if target == "cuda:h100" else "f32[8]")
        replies[target].append(reply)
        replies[target].append(await traced(session, plain, "plain"))
    # Each is traced once.
    first, *others = replies["cpu"][::2]
    assert all(other is first for other in others)
    first, *others = (reply for each in replies.values() for reply in each[1::2])
    assert all(other is first for other in others)
    session.choose_target("")


async def test_each_target_has_the_kernels_of_its_own_trace(
    session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "several.py"
    session.open(str(path), SOURCE)
    session.choose_target("cuda:h100")
    view = await view_of(session.engine, str(path), "asks")
    assert isinstance(view.answer.reply, Traced)
    assert view.answer.reply.outputs == "f32[4,8]"
    other, result = await compiled_function(session.engine, str(path), "asks", "cpu")
    assert isinstance(other.answer.reply, Traced)
    assert other.answer.reply.outputs == "f32[8]"
    assert result.lowered is not None
    assert [equation.primitive for equation in result.lowered.equations] == ["sin", "reduce_sum"]
    # What is shown is still that of the first target.
    again = await view_of(session.engine, str(path), "asks")
    assert again.answer is view.answer
    session.choose_target("")


async def test_a_caveat_is_at_the_line_that_asks(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "line.py"
    session.open(str(path), "# moved\n" + SOURCE)
    session.choose_target("cuda:h100")
    (caveat,) = (await view_of(session.engine, str(path), "remembers")).caveats
    assert caveat.range.start.line == SOURCE.split("\n").index("    free = MEMORY()") + 1
    assert caveat.reason == "`free = MEMORY()` reads `memory_stats()`: they are the CPU's here"
    session.choose_target("")
    assert (await view_of(session.engine, str(path), "remembers")).caveats == ()
