"""The first minute of a project, in pictures: the scenes of `docs/first-minute.md`.

`pytest tests/vscode/test_first_minute.py --update-fixtures` takes them anew.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import REPOSITORY, CodeServer
from tests.vscode.pictures import Page
from tests.vscode.project import SHAPES, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

PAGE = Page(REPOSITORY / "docs" / "first-minute.md")
SIZE = {"width": 1040, "height": 560}

PLAIN = """\
import jax
import jax.numpy as jnp


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)
"""

NAMED = '''\
import jax
import jax.numpy as jnp


def attention(q, k, v):
    """
    Example inputs:
        q, k, v: f32[B, H, L, D]
        where B=2, H=4, L=128, D=64
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)
'''

MODEL = '''\
import jax
import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, size, rngs):
        self.norm = nnx.LayerNorm(size, rngs=rngs)
        self.up = nnx.Linear(size, 4 * size, rngs=rngs)
        self.down = nnx.Linear(4 * size, size, rngs=rngs)

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(self.norm(x))))


class Model(nnx.Module):
    def __init__(self, size, depth, rngs):
        self.blocks = nnx.List([Block(size, rngs) for _ in range(depth)])
        self.head = nnx.Linear(size, 1, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss(model, x, y):
    """
    Example inputs:
        model = Model(64, 6, nnx.Rngs(0))
        x: f32[32, 64]
        y: f32[32, 1]
    """
    prediction = model(x)
    return jnp.mean((prediction - y) ** 2)
'''

STEP = '''\
import jax
import jax.numpy as jnp


def layer(p, x):
    h = jax.nn.gelu(x @ p["up"]) @ p["down"]
    mean = h.mean(axis=-1, keepdims=True)
    return x + (h - mean) * jax.lax.rsqrt(h.var(axis=-1, keepdims=True) + 1e-6)


def forward(params, x):
    for p in params:
        x = layer(p, x)
    return x


def loss(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


def adam(p, m, g):
    m = 0.9 * m + 0.1 * g
    return p - 1e-3 * m / (jnp.abs(m).max() + 1e-8), m


def train_step(params, moments, x, y):
    """
    Example inputs:
        params = [{"up": jnp.zeros((64, 256)), "down": jnp.zeros((256, 64))} for _ in range(12)]
        moments = [{"up": jnp.zeros((64, 256)), "down": jnp.zeros((256, 64))} for _ in range(12)]
        x, y: f32[128, 64]
    """
    gradients = jax.grad(loss)(params, x, y)
    pairs = jax.tree.map(adam, params, moments, gradients)
    return jax.tree.transpose(jax.tree.structure(params), None, pairs)
'''

RUN = """\
import jax.numpy as jnp
from model import attention

q = jnp.ones((2, 4, 128, 64))
attention(q, q, q)
"""


SCRIPT = """\
import jax
import jax.numpy as jnp


def loss(params, batch):
    prediction = jnp.tanh(batch["x"] @ params["in"]) @ params["out"]
    return jnp.mean((prediction - batch["y"]) ** 2)


@jax.jit
def update(params, batch):
    gradients = jax.grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


if __name__ == "__main__":
    params = {"in": jnp.zeros((784, 512)), "out": jnp.zeros((512, 10))}
    for step in range(1000):
        batch = {"x": jnp.ones((128, 784)), "y": jnp.ones((128, 10))}
        params = update(params, batch)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """A workspace of several projects."""
    scratch = tmp_path_factory.mktemp("first-minute")
    empty: dict[str, object] = {"jaxsight.proposeInputs": True, "jaxsight.examplesAssumed": False}
    make(scratch / "empty", {"model.py": PLAIN}, python=python, settings=SHAPES, **empty)
    recorded = {"model.py": PLAIN, "run.py": RUN}
    make(scratch / "recorded", recorded, python=python, settings=SHAPES)
    make(scratch / "script", {"train.py": SCRIPT}, python=python, settings=SHAPES)
    make(scratch / "named", {"named.py": NAMED}, python=python, settings=SHAPES)
    make(scratch / "modules", {"modules.py": MODEL}, python=python, settings=SHAPES)
    target = '[tool.jaxsight]\ntarget = "cuda:h100"\n'
    make(scratch / "training", {"training.py": STEP}, python=python, settings=target)
    return scratch


@pytest.fixture
def opened(
    server: CodeServer, browser: Browser, folder: Path, request: pytest.FixtureRequest
) -> Iterator[Window]:
    """A window with the file that the test names, and no side bar."""
    file = folder / request.param
    with window(browser, server.port, file.parent, file) as editor:
        editor.page.set_viewport_size(SIZE)
        editor.sees("import jax")
        editor.page.keyboard.press("Control+b")
        yield editor


@pytest.mark.parametrize("opened", ["empty/model.py"], indirect=True)
def test_a_project_without_example_inputs(opened: Window, update_fixtures: bool) -> None:
    lens = opened.page.locator(".codelens-decoration a", has_text="show shapes…")
    lens.wait_for()
    PAGE.take(opened, "first-minute-lens.png", update=update_fixtures)
    lens.click()
    opened.sees("scores: ?f32[B,H,")
    PAGE.take(opened, "first-minute-shapes.png", update=update_fixtures)
    assert opened.page.locator(".tab.active.dirty").count() == 0  # nothing was written


@pytest.mark.parametrize("opened", ["script/train.py"], indirect=True)
def test_a_script(opened: Window, update_fixtures: bool) -> None:
    opened.sees("prediction: f32[128,10]")
    PAGE.take(opened, "first-minute-script.png", update=update_fixtures)


@pytest.mark.parametrize("opened", ["recorded/model.py"], indirect=True)
def test_a_recorded_run(opened: Window, folder: Path, python: str, update_fixtures: bool) -> None:
    command = [python, "-m", "jaxsight", "record", "--", python, "run.py"]
    subprocess.run(command, cwd=folder / "recorded", check=True, timeout=120)
    # The open file shows what the run has recorded.
    opened.sees("scores: f32[2,4,128,128]")
    PAGE.take(opened, "first-minute-recorded.png", update=update_fixtures)


@pytest.mark.parametrize("opened", ["named/named.py"], indirect=True)
def test_named_sizes(opened: Window, update_fixtures: bool) -> None:
    opened.sees("scores: f32[B,H,L,L]")
    PAGE.take(opened, "first-minute-names.png", update=update_fixtures)


@pytest.mark.parametrize("opened", ["modules/modules.py"], indirect=True)
def test_the_hover_of_a_module(opened: Window, update_fixtures: bool) -> None:
    opened.page.keyboard.press("Control+End")
    opened.sees("prediction: f32[32,1]")
    opened.hover("def |loss|(model", "parameters")
    PAGE.take(opened, "first-minute-module.png", update=update_fixtures)
    opened.leave()


@pytest.mark.parametrize("opened", ["named/named.py"], indirect=True)
def test_the_list_of_targets(opened: Window, update_fixtures: bool) -> None:
    opened.command("jaxsight: Choose Target")
    PAGE.take(opened, "first-minute-targets.png", update=update_fixtures)
    opened.page.keyboard.press("Escape")


@pytest.mark.parametrize("opened", ["training/training.py"], indirect=True)
def test_the_panel_of_a_training_step(opened: Window, update_fixtures: bool) -> None:
    opened.page.keyboard.press("Control+End")
    opened.click("|def| train_step")
    opened.command("jaxsight: Show Kernels in a Panel")
    opened.panel().locator(".kernel-list .row[data-kernel]").nth(4).wait_for()
    opened.panel().locator(".graph-area").get_by_role("option").first.wait_for()
    PAGE.take(opened, "first-minute-panel.png", update=update_fixtures)


def test_the_page_has_each_picture_that_there_is() -> None:
    kept = {file.name for file in PAGE.folder.glob("first-minute-*")}
    assert kept == PAGE.pictures
