"""Scripts and notebooks: their functions are shown with the arguments of their own calls."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.features.rendering import with_hints
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTEBOOK = """\
import jax
import jax.numpy as jnp
from my_jax_utils import show_hlo_info

x = jnp.zeros((1024*128,2)) # Our probe array -- it uses 1MB

def kvec_mesh(N):
    return jnp.stack((jnp.arange(0, N), jnp.arange(0, N)), axis=-1)

def f_sum_jax(x):
    kvm = kvec_mesh(len(x))
    return x * 2 + jnp.sum(kvm * x, axis=1, keepdims=True)

show_hlo_info(jax.jit(f_sum_jax), x, width=500)

x3d = jnp.zeros((64,64,32,2))

def f_fft3d(x):
    a = jnp.fft.rfftn(x, axes=(0,1,2))
    return jnp.abs(a)

show_hlo_info(jax.jit(f_fft3d), x3d.transpose(3,0,1,2), width=250)
"""

TRAINING = """\
import jax
import jax.numpy as jnp


def predict(params, x):
    y = x @ params["w"]
    return y


def loss(params, batch):
    return jnp.mean((predict(params, batch["x"]) - batch["y"]) ** 2)


@jax.jit
def update(params, batch):
    grads = jax.grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - g, params, grads)


def save(params, path):
    with open(path, "w") as file:
        file.write(str(jnp.sum(params["w"])))


def fails(x):
    y = jnp.sin(x)
    if y > 0:
        return y
    return -y


def batches():
    while True:
        yield {"x": jnp.ones((32, 8)), "y": jnp.zeros((32, 1))}


if __name__ == "__main__":
    params = {"w": jnp.zeros((8, 1))}
    save(params, "PATH")
    for step, batch in zip(range(3), batches()):
        params = update(params, batch)
    fails(1.0)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    root = tmp_path_factory.mktemp("project")
    (root / "pyproject.toml").touch()
    session = session_without_spare()
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    for name, text in (("notebook.py", NOTEBOOK), ("train.py", TRAINING)):
        source = text.replace("PATH", str(root / "saved.txt"))
        (root / name).write_text(source)
        session.open(str(root / name), source)
        await session.background.settle(str(root / name), patience=240)
    yield session
    await session.aclose()


def path(session: Session, name: str) -> str:
    return next(p for p in session.engine.documents.by_path if p.endswith(name))


async def test_functions_of_a_notebook_have_the_arguments_of_its_calls(session: Session) -> None:
    file = path(session, "notebook.py")
    assert session.engine.documents.functions(file) == ["kvec_mesh", "f_sum_jax", "f_fft3d"]
    shown = with_hints(NOTEBOOK, await session.hints(file, wait=True))
    assert "    kvm⟦: i32[131072,2]⟧ = kvec_mesh(len(x))\n" in shown
    assert "    a⟦: c64[2,64,33,32]⟧ = jnp.fft.rfftn" in shown
    hover = await session.hover(file, Position(9, 5))
    assert hover is not None
    call = "`show_hlo_info(jax.jit(f_sum_jax), x, width=500)`"
    assert "f_sum_jax(x: f32[131072,2]) -> f32[131072,2]" in hover.markdown
    assert f"as in {call}" in hover.markdown
    lenses = [lens.title for lens in await session.lenses(file) if lens.range.start.line == 9]
    assert lenses[0] == f"as in {call}"


NUMBERS = """\
import jax
import jax.numpy as jnp


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [jax.random.normal(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:])]


params = init(jax.random.PRNGKey(0), [784, 128, 10])
"""


async def test_python_numbers_stay_numbers_in_a_call_that_nothing_traces(session: Session) -> None:
    file = str(Path(path(session, "train.py")).with_name("numbers_.py"))
    session.open(file, NUMBERS)
    await session.background.settle(file, patience=240)
    hover = await session.hover(file, Position(4, 5))
    session.close(file)
    assert hover is not None
    assert "init(key: u32[2], sizes: [784, 128, 10]) -> [f32[784,128], f32[128,10]]" in (
        hover.markdown
    )
    assert "PRNG key: `key`" in hover.markdown


async def test_what_they_call_is_shown_as_called(session: Session) -> None:
    file = path(session, "train.py")
    shown = with_hints(TRAINING, await session.hints(file, wait=True))
    assert '    y⟦: f32[32,1]⟧ = x @ params["w"]\n' in shown
    assert "    grads⟦: {'w': f32[8,1]}⟧ = jax.grad(loss)(params, batch)\n" in shown


async def test_what_fails_or_has_effects_is_no_error_and_has_none(session: Session) -> None:
    file = path(session, "train.py")
    assert "update" in session.engine.documents.functions(
        file
    )  # calls that fail are left out in the background
    codes = {finding.code for finding in (await session.report(file)).reported}
    assert not {code for code in codes if code.startswith(("JX4", "JX9"))}
    assert not Path(file).with_name("saved.txt").exists()
