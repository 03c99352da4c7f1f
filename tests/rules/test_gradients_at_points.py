"""Where JX405 says that a gradient is NaN, that of JAX is; near misses are silent."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import pytest_asyncio

from jaxsight.rules import RULES
from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from tests.features.rendering import without_marks
from tests.quiet import QUIET
from tests.rules.cases import FOUND, NOT_FOUND, cases_of
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

ERRORS = Path(__file__).parents[1] / "corpora" / "rules" / "errors"
_SAID = re.compile(r"`(\w+) = ([^`]+)`")
_INPUTS = re.compile(r"^ +(\w+(?:, \w+)*): (f32|i32|bool)\[([\d, ]*)\]$", re.MULTILINE)
_TYPES = {"f32": jnp.float32, "i32": jnp.int32, "bool": jnp.bool_}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cpu", "select": ["JX405"]}
    session.configure([str(tmp_path_factory.getbasetemp())], {**QUIET, **settings})
    yield session
    await session.aclose()


def texts(part: str) -> Iterator[str]:
    """Yield the cases of the rule, and those drawn from threads, that it finds or does not."""
    yield from (without_marks(block.text) for block in cases_of(RULES["JX405"]).blocks(part))
    name = "where_gradients.py" if part == FOUND else "where_gradients_near_misses.py"
    yield (ERRORS / name).read_text(encoding="utf-8")


async def findings(session: Session, text: str, folder: Path) -> list[Finding]:
    path = str(folder / "case.py")
    session.open(path, text)
    found = (await session.report(path, kernels=False)).reported
    session.close(path)
    return found


def executed(text: str) -> ModuleType:
    module = ModuleType("case")
    exec(compile(text, "case.py", "exec"), module.__dict__)
    return module


def inputs(function: Callable[..., Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the example inputs of a function: dtypes and shapes."""
    return {
        name: (dtype, tuple(int(size) for size in shape.split(",") if size))
        for names, dtype, shape in _INPUTS.findall(function.__doc__ or "")
        for name in names.split(", ")
    }


def gradient(
    function: Callable[..., Any], at: dict[str, float]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the value and the gradients of a function, by arrays of one number each."""
    types = inputs(function)
    given = {n: jnp.full(shape, at[n], _TYPES[dtype]) for n, (dtype, shape) in types.items()}
    floats = {name: value for name, value in given.items() if value.dtype == jnp.float32}
    others = {name: value for name, value in given.items() if name not in floats}

    def total(floats: dict[str, jax.Array]) -> jax.Array:
        return jnp.sum(function(**floats, **others))

    return np.asarray(function(**given)), list(map(np.asarray, jax.grad(total)(floats).values()))


@pytest.mark.slow
@pytest.mark.parametrize("text", [*texts(FOUND)], ids=range(4))
async def test_gradients_are_nan_where_the_rule_says_so(
    text: str, session: Session, tmp_path: Path
) -> None:
    if "jax_debug_nans" in text or "shard_map" in text:
        return  # inside of `shard_map`, no value of an argument is known to reach what is hidden
    module, lines = executed(text), text.splitlines()
    for finding in await findings(session, text, tmp_path):
        at = {name: float(number) for name, number in _SAID.findall(finding.message)}
        assert at, finding.message
        heads = [re.match(r"def (\w+)", line) for line in lines[: finding.range.start.line]]
        name = next(head[1] for head in reversed(heads) if head)
        value, gradients = gradient(getattr(module, name), at)
        assert np.isfinite(value).all(), name
        assert any(np.isnan(each).any() for each in gradients), (name, at)


@pytest.mark.parametrize("text", [*texts(NOT_FOUND)], ids=range(3))
async def test_nothing_is_found_in_near_misses(text: str, session: Session, tmp_path: Path) -> None:
    assert await findings(session, text, tmp_path) == []
