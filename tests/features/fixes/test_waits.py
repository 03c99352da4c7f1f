"""Fixes of benchmarks, which nothing traces: the text proves that they add nothing but waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.fixes.waits import are_all_that_differs
from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = "import time\n\nimport jax\n\nf = jax.jit(lambda x: x + 1)\n"
MEASURED = f"{HEAD}start = time.time()\ny = f(1.0)\nprint(time.time() - start)\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    folder = tmp_path_factory.mktemp("benchmarks")
    # A Python that does not exist: nothing of the file may run.
    session.configure([str(folder)], {**QUIET, "python": str(folder / "python")})
    yield session
    await session.aclose()


async def test_a_fix_of_a_benchmark_is_offered_without_running_anything(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "benchmark.py")
    session.open(path, MEASURED)
    [fix] = await session.fixes(path)
    assert fix.safe
    assert applied(MEASURED, fix.edits) == MEASURED.replace(
        "y = f(1.0)", "y = jax.block_until_ready(f(1.0))"
    )
    line = MEASURED.splitlines().index("y = f(1.0)")
    actions = await session.actions(path, Range(Position(line, 5), Position(line, 5)))
    assert [action.title for action in actions if action.preferred] == [fix.title]
    session.close(path)


async def test_none_is_offered_where_jax_is_something_else(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "other.py")
    text = MEASURED.replace("import jax\n", "from jax import jit\n").replace("jax.jit", "jit")
    session.open(path, text.replace("start =", "jax = 1\nstart ="))
    assert [finding.code for finding in (await session.report(path)).reported] == ["JX431"]
    assert await session.fixes(path) == []
    session.close(path)


LOOP = f"{HEAD}y = 1.0\nfor _ in range(3):\n    y = f(y)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MEASURED, MEASURED.replace("y = f(1.0)", "y = jax.block_until_ready(f(1.0))")),
        (LOOP, f"{LOOP}jax.block_until_ready(y)\n"),
        (LOOP, LOOP.replace("    y = f(y)", "    y = jax.block_until_ready(f(y))  # waits")),
        ("from jax import jit\n", "import jax\nfrom jax import jit\n"),
    ],
)
async def test_waits_change_nothing(before: str, after: str) -> None:
    assert are_all_that_differs(Module.parse(before), Module.parse(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MEASURED, MEASURED.replace("f(1.0)", "jax.block_until_ready(f(2.0))")),
        (MEASURED, MEASURED.replace("f(1.0)", "jax.block_until_ready(f(1.0), 2)")),
        (MEASURED, MEASURED.replace("f(1.0)", "jax.device_get(f(1.0))")),
        (LOOP, f"{LOOP}jax.block_until_ready(z)\n"),
        (f"{HEAD}y = 1.0\n", f"{HEAD}y = 1.0\njax.block_until_ready(y)\n"),
        (LOOP, LOOP.replace("range(3)", "range(3")),
        ("jax = 1\nfrom jax import jit\n", "jax = 1\nimport jax\nfrom jax import jit\n"),
    ],
)
async def test_other_changes_are_not_taken_for_waits(before: str, after: str) -> None:
    assert not are_all_that_differs(Module.parse(before), Module.parse(after))
