"""What ended a tracer is not run again, whoever asks, until it or what it reads changes."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import FileStatus
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE = 60
"""Seconds after which what does not come counts as missing."""

SECTION = '    """\n    Example inputs:\n        x: f32[3]\n    """\n'
STATEMENT = f"""\
import jax.numpy as jnp
import helper

N = helper.size(3)

def f(x):
{SECTION}    return jnp.sin(x) * N

def g(x):
{SECTION}    return jnp.cos(x) * N

def h(x):
{SECTION}    return jnp.tan(x) * N
"""
FINE = "def size(n):\n    return n\n"
KILLS = "import ctypes\n\ndef size(n):\n    return ctypes.string_at(0)\n"

MODEL = "import jax.numpy as jnp\n\ndef apply(x, w):\n    return jnp.sin(x @ w)\n"
TESTS = "import ctypes\nimport jax.numpy as jnp\nimport model\n"
KILLING = "\ndef test_{name}():\n    model.apply(jnp.ones(3), jnp.ones((3, 2)))\n    ctypes.string_at(0)\n"


@pytest_asyncio.fixture(loop_scope="module")
async def killed(tmp_path: Path) -> AsyncIterator[tuple[Session, Path]]:
    session = session_without_spare(Trust(Policy.ALWAYS))
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable})
    yield session, tmp_path
    await session.aclose()


async def settled(session: Session, path: str, line: int) -> str:
    """The hover on a function, once no tracer is waited for: on a busy machine one starts slowly."""
    while True:
        hover = await session.hover(path, Position(line, 4))
        if hover is not None and "waiting for" not in hover.markdown:
            return hover.markdown


async def deaths(caplog: pytest.LogCaptureFixture, least: int = 1) -> int:
    """The tracers that died; they are reported after the answers, on a busy machine much later."""

    def count() -> int:
        return sum(" died " in record.message for record in caplog.records)

    for _ in range(PATIENCE * 20):
        if count() < least:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)  # whether there are more
    return count()


@pytest.mark.slow
async def test_a_statement_that_ends_a_tracer_does_so_once(
    killed: tuple[Session, Path], caplog: pytest.LogCaptureFixture
) -> None:
    session, root = killed
    caplog.set_level(logging.WARNING)
    path, other = str(root / "main.py"), str(root / "other.py")
    (root / "helper.py").write_text(KILLS)
    session.open(path, STATEMENT)
    lines = [at for at, line in enumerate(STATEMENT.split("\n")) if line.startswith("def ")]
    for line in lines:
        hover = await settled(session, path, line)
        assert "executing `N = helper.size(3)` crashed the process (SIGSEGV" in hover
    await session.hints(path, wait=True)
    assert await deaths(caplog) == 1
    # Neither other files nor other texts of this one are what it reads.
    session.open(other, "X = 1\n")
    session.change(other, "X = 2\n")
    session.change(path, STATEMENT.replace("jnp.cos(x)", "jnp.cosh(x)"))
    await session.hints(path, wait=True)
    assert await deaths(caplog) == 1
    await session.restart()
    await session.hints(path, wait=True)
    assert await deaths(caplog, 2) == 2
    session.open(str(root / "helper.py"), FINE)
    for line in lines:
        hover = await settled(session, path, line)
        assert "(x: f32[3]) -> f32[3]" in hover
    assert await deaths(caplog) == 2


@pytest.mark.slow
async def test_a_test_that_ends_a_tracer_does_so_once_and_is_named(
    killed: tuple[Session, Path], caplog: pytest.LogCaptureFixture
) -> None:
    session, root = killed
    caplog.set_level(logging.WARNING)
    path = str(root / "model.py")
    names = ("one", "two", "three", "four", "five")
    tests = TESTS + "".join(KILLING.format(name=name) for name in names)
    (root / "test_model.py").write_text(tests)
    session.open(path, MODEL)
    await session.background.settle(path)
    first = await deaths(caplog)
    assert 1 <= first <= 3
    session.change(path, f"# A comment.\n{MODEL}")
    await session.background.settle(path)
    session.open(str(root / "unrelated.py"), MODEL.replace("apply", "other"))
    await session.background.settle(str(root / "unrelated.py"))
    assert await deaths(caplog) == first
    session.change(path, MODEL)
    why = ""
    async with asyncio.timeout(PATIENCE):
        while "crashed" not in why:
            event = await session.events.get()
            why = event.why_detail if isinstance(event, FileStatus) and event.path == path else ""
    assert "`test_one` of test_model.py crashed the process (SIGSEGV" in why
    assert "edit it, or run `jaxsight.restart`" in why
    mended = tests.replace("    ctypes.string_at(0)\n", "")
    (root / "test_model.py").write_text(mended)
    session.files_changed([str(root / "test_model.py")])
    await session.background.settle(path)
    assert "apply" in session.engine.documents.functions(path)
    assert await deaths(caplog) == first
