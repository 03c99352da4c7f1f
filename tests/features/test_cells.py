"""Notebooks: a function is called by the cells after it, and before its next definition."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from tests.features.rendering import with_hints
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

CELLS = """\
import jax; import jax.numpy as jnp
from my_jax_utils_not_here import show
import matplotlib.pyplot as plt

SCALE = 2.0

def linear_model(w, x):
    y = w * x * SCALE
    return y

def loss(w, x):
    z = linear_model(w, x)
    return z.sum()

show(jax.jit(linear_model), jnp.ones(1), jnp.ones(1), width=500)
show(jax.jit(loss), jnp.ones(2), jnp.ones(2))

fig, ax = plt.subplots()
ax.plot(jax.jit(loss)(jnp.ones(2), jnp.ones(2)))
plt.savefig("loss.png")
display(fig)

SCALE = jnp.ones((7, 1))

def linear_model(w, x):
    y = w @ x
    return y

y = jax.jit(linear_model)(jnp.ones((100, 3)), jnp.ones(3))
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    root = tmp_path_factory.mktemp("cells")
    session = session_without_spare()
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    session.open(str(root / "notebook.ipynb"), CELLS)
    await session.background.settle(str(root / "notebook.ipynb"), patience=240)
    yield session
    await session.aclose()


def path(session: Session) -> str:
    return next(iter(session.engine.documents.by_path))


async def test_each_definition_is_its_own(session: Session) -> None:
    shown = with_hints(CELLS, await session.hints(path(session), wait=True))
    assert "    y⟦: f32[1]⟧ = w * x * SCALE" in shown
    assert "    z⟦: f32[2]⟧ = linear_model(w, x)" in shown
    assert "    y⟦: f32[100]⟧ = w @ x" in shown


async def test_plots_and_a_missing_helper_are_no_caveats(session: Session) -> None:
    document = session.engine.documents.get(path(session))
    assert document is not None
    views = await session.engine.traces.views(document, None)
    assert [view.subject.name for view in views] == ["linear_model", "loss", "linear_model"]
    assert [view.caveats for view in views] == [(), (), ()]


STOPPED = """\
import jax
import jax.numpy as jnp

def spin(n):
    while n:
        n = n + 0
    return True

CHECKS = [spin]
for n in [1, 2]:
    assert CHECKS[0](n)

def f(x):
    \"\"\"
    Example inputs:
        x: f32[3]
    \"\"\"
    return jnp.sin(x)

def g(x):
    \"\"\"
    Example inputs:
        x: f32[3]
    \"\"\"
    return x * len(CHECKS)
"""


async def test_a_check_that_was_stopped_is_a_caveat_only_of_who_reads_its_names(
    tmp_path: Path,
) -> None:
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "timeouts": {"statement": 0.5}}
    session.configure([str(tmp_path)], settings)
    session.open(str(tmp_path / "stopped.py"), STOPPED)
    await session.hints(str(tmp_path / "stopped.py"), wait=True)
    document = session.engine.documents.get(str(tmp_path / "stopped.py"))
    assert document is not None
    views = {v.subject.name: v for v in await session.engine.traces.views(document, None)}
    await session.aclose()
    assert views["f"].caveats == ()
    (caveat,) = views["g"].caveats
    assert "was stopped after" in caveat.reason
