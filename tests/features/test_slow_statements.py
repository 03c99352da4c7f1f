"""A statement that takes long holds up only the functions that need it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE = 120
"""Seconds after which what does not come counts as missing."""

SECTION = '    """\n    Example inputs:\n        x: f32[3]\n    """\n'
TEXT = f"""\
import os
import jax.numpy as jnp

LOG = []

def slow(n):
    LOG.append(n)
    while not os.path.exists("GO"):
        sum(range(1000))
    return n

N = slow(3)

def first(x):
{SECTION}    return jnp.tanh(x)

def second(x):
{SECTION}    return jnp.sin(x) * N
"""


@pytest_asyncio.fixture(loop_scope="module")
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Session, str, Path]]:
    session = Session(Projects(Trust(Policy.ALWAYS)))
    timeouts = {"timeouts": {"statement": 0.5}}
    session.configure([str(tmp_path)], {**QUIET, **timeouts, "python": sys.executable})
    go, path = tmp_path / "go", str(tmp_path / "train.py")
    session.open(path, TEXT.replace("GO", str(go)), in_background=False)
    yield session, path, go
    await session.aclose()


async def head(session: Session, path: str, function: str) -> str:
    """What a hover says of a function once it says anything of its trace."""
    line = TEXT.split("\n").index(f"def {function}(x):")
    async with asyncio.timeout(PATIENCE):
        while True:
            hover = await session.hover(path, Position(line, 4))
            if hover is not None and "is not traced yet" not in hover.markdown:
                return hover.markdown


@pytest.mark.slow
async def test_a_function_is_shown_while_a_statement_runs_that_it_does_not_need(
    opened: tuple[Session, str, Path],
) -> None:
    session, path, go = opened
    waiting = asyncio.ensure_future(head(session, path, "second"))
    await asyncio.sleep(0)
    shown = await head(session, path, "first")
    assert "first(x: f32[3]) -> f32[3]" in shown
    assert "`N = slow(3)` was stopped after 0.5 s and skipped" in shown
    assert not waiting.done()
    go.touch()
    assert "second(x: f32[3]) -> f32[3]" in await waiting


async def test_a_function_gets_what_was_skipped_for_another_one(
    opened: tuple[Session, str, Path],
) -> None:
    session, path, go = opened
    assert "first(x: f32[3]) -> f32[3]" in await head(session, path, "first")
    waiting = asyncio.ensure_future(head(session, path, "second"))
    await asyncio.sleep(1)
    go.touch()
    assert "second(x: f32[3]) -> f32[3]" in await waiting


@pytest.mark.slow
async def test_a_registration_before_slow_statements_is_not_made_twice(
    opened: tuple[Session, str, Path],
) -> None:
    session, path, _ = opened
    flatten = "lambda v: (tuple(vars(v).values()), tuple(vars(v)))"
    register = f"register_pytree_node(SimpleNamespace, {flatten}, lambda k, v: None)"
    head_of_it = f"from types import SimpleNamespace\nimport jax\njax.tree_util.{register}\n"
    again = path.replace("train", "registering")
    waits = "\nN = slow(4)\nM = slow(5)\nLOG.append(N)\n"
    text = f"{head_of_it}{TEXT.replace(chr(10) + 'N = slow(3)' + chr(10), waits)}"
    session.open(again, text)
    line = text.split("\n").index("def first(x):")
    async with asyncio.timeout(PATIENCE):
        while True:
            hover = await session.hover(again, Position(line, 4))
            if hover is not None and "is not traced yet" not in hover.markdown:
                break
    assert "first(x: f32[3]) -> f32[3]" in hover.markdown
    assert "Duplicate" not in hover.markdown
