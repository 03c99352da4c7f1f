"""Definitions of one name: each has its own answers, inputs and figures, by its place."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.named_function import compiled_function
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.trust import Policy, Trust
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE = 60
"""Seconds after which what does not come counts as missing."""

SLOW = """\
import time
import jax
import jax.numpy as jnp

def slow(n):
    end = time.perf_counter() + 4
    while time.perf_counter() < end:
        sum(range(100000))
    return n

N = slow(3)
x = jnp.ones(N)

@jax.jit
def f(x):
    \"\"\"Example inputs: x: f32[3]\"\"\"
    return jnp.sin(x * N)

f(x)

@jax.jit
def f(x):
    \"\"\"Example inputs: x: f32[3]\"\"\"
    return jnp.cos(x * N)

f(x)
"""

FAILING = """\
import jax.numpy as jnp
x = jnp.ones(3)

def f(x):
    return {first}(x)

f(x)

def f(x):
    return {second}(x)

f(x)
"""

SETS = """\
import jax.numpy as jnp

def f(x):
    \"\"\"
    Example inputs (small):
        x: f32[2]

    Example inputs (large):
        x: f32[9]
    \"\"\"
    return jnp.sin(x)

def f(x):
    \"\"\"
    Example inputs (small):
        x: f32[3]

    Example inputs (large):
        x: f32[7]
    \"\"\"
    return jnp.cos(x)
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def redefining(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Session, Path]]:
    root = tmp_path_factory.mktemp("redefining").resolve()
    session = session_without_spare(Trust(Policy.ALWAYS))
    session.configure([str(root)], {"python": sys.executable})
    yield session, root
    await session.aclose()


async def heads(session: Session, path: str, text: str) -> list[str]:
    """What hovers say of each definition of `f`, one after the other."""
    lines = [line for line, content in enumerate(text.split("\n")) if content.startswith("def f")]
    hovers = [await session.hover(path, Position(line, 4)) for line in lines]
    return [hover.markdown if hover is not None else "" for hover in hovers]


@pytest.mark.slow
async def test_definitions_of_a_name_do_not_end_the_questions_about_each_other(
    redefining: tuple[Session, Path],
) -> None:
    session, root = redefining
    path = str(root / "slow.py")
    session.open(path, SLOW)
    async with asyncio.timeout(PATIENCE):
        said = await heads(session, path, SLOW)
        while any("waiting for" in each for each in said):
            said = await heads(session, path, SLOW)
    assert "f(x: f32[3])" in said[0]
    assert "sin" in said[0]
    assert "f(x: f32[3])" in said[1]
    assert "cos" in said[1]
    session.close(path)


@pytest.mark.parametrize("failing", ["first", "second"])
async def test_inputs_that_one_definition_rejects_are_those_of_the_other(
    redefining: tuple[Session, Path], failing: str
) -> None:
    session, root = redefining
    path = str(root / f"rejects_{failing}.py")
    text = FAILING.format(**{"first": "jnp.sin", "second": "jnp.sin", failing: "missing"})
    session.open(path, text)
    await session.background.settle(path, patience=4 * PATIENCE)
    for _ in range(2):
        said = dict(zip(("first", "second"), await heads(session, path, text), strict=True))
        assert "f(x: f32[3])" in said.pop("second" if failing == "first" else "first")
        assert "sin" not in said[failing]
        await session.background.settle(path, patience=4 * PATIENCE)
    session.close(path)


async def test_another_example_set_is_chosen_for_one_definition(
    redefining: tuple[Session, Path],
) -> None:
    session, root = redefining
    path = str(root / "sets.py")
    session.open(path, SETS)
    assert session.engine.documents.functions(path) == ["f@1", "f"]
    session.choose_set(path, "f@1", "large")
    await session.hints(path, wait=True)  # hovers wait for seconds only
    first, second = await heads(session, path, SETS)
    assert "f(x: f32[9])" in first
    assert "f(x: f32[3])" in second
    for function, size, name in (("f@1", 9, "sin"), ("f", 3, "cos")):
        shown = await session.show(path, function)
        assert f"f32[{size}]" in shown.text
        assert name in shown.text
        view, compiled = await compiled_function(session.engine, path, function, complete=True)
        assert view.subject.id == function
        assert compiled.is_complete
    said = await heads(session, path, SETS)
    assert " | 1 | 1 | 36 B | " in said[0]
    assert " | 1 | 1 | 12 B | " in said[1]
    session.close(path)
