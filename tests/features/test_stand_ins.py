"""Data that is not there has as much of a type as the code says, and no more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxsight.session import Session
from tests.features.test_unknown_sizes import hover_of
from tests.quiet import QUIET

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport absent_data as ad\n\n\n"
F = "@jax.jit\ndef f(x, y=None):\n    return jnp.sum(jnp.sin(x))\n\n\n"

TYPED = {
    # What `f` is called with.
    "a reshape and a dtype": (
        "x = ad.load('train')\nf(jnp.asarray(x, jnp.float32).reshape(-1, 784))",
        "x: f32[?V,784]",
    ),
    "all sizes": (
        "for batch in ad.batches():\n    f(batch['image'].reshape(32, 784).astype(jnp.float32))",
        "x: f32[32,784]",
    ),
    "a quotient": (
        "images = ad.images.reshape(-1, 28, 28, 1) / 255.0\nf(images[0])",
        "x: f32[28,28,1]",
    ),
    "a loader of torch": (
        (
            "from torch.utils.data import DataLoader\n\nfor x, y in DataLoader(ad.images, 128):\n"
            "    f(jnp.reshape(jnp.asarray(x, jnp.float32), (len(x), 28 * 28)) / 255.0)"
        ),
        "x: f32[?V,784]",
    ),
    "an unpacked shape": (
        "x = ad.load()\nb, t, c = x.shape\nf(x.astype(np.float32))",
        "x: f32[?V,?U,?S]",
    ),
    "the next of an iterator": (
        "x, y = next(iter(ad.loader))\nf(np.array(x, dtype=np.int32).reshape(4, -1))",
        "x: i32[4,?V]",
    ),
    "a sum": ("f(jnp.asarray(ad.x, jnp.int32).sum())", "x: i32[]"),
    "a table": (
        "data = np.loadtxt('a.csv', delimiter=',')\nf(data[:, :-1], data[:, -1])",
        "x: f32[?V,?U-1], y: f32[?V]",
    ),
    "columns of a table": (
        "t, v = np.genfromtxt('a.txt', unpack=True)\nf(jnp.array(t)[:, None], jnp.array(v))",
        "x: f32[?U,1], y: f32[?U]",
    ),
    "a frame": (
        (
            "import pandas as pd\n\ndf = pd.read_csv('a.csv').dropna()\n"
            "f(jnp.array(df[['a', 'b']].values, dtype=jnp.float32),\n"
            "  jnp.array(df['c'].to_numpy(), dtype=jnp.int32))"
        ),
        "x: f32[?V,2], y: i32[?V]",
    ),
    "blocks of a file": (
        (
            "raw = np.fromfile('a.f32', dtype=np.float32)\n"
            "f(raw[: len(raw) // 1024 * 1024].reshape(-1, 1024))"
        ),
        "x: f32[?V/1024,1024]",
    ),
    "a mapped file": (
        (
            "data = np.memmap('a.bin', dtype=np.uint16, mode='r')\n"
            "ix = np.random.randint(0, len(data) - 256, (12,))\n"
            "f(np.stack([data[i : i + 256].astype(np.int64) for i in ix]))"
        ),
        "x: i32[12,256]",
    ),
    "a rest of a division": (
        "data = np.fromfile('a.f32', dtype=np.float32)\nf(jnp.ones((len(data) // 100, 2)))",
        "x: f32[?V//100,2]",
    ),
    "what a failed loop changes": (
        (
            "w = jnp.ones(3)\nx = jnp.asarray(ad.x, jnp.float32).reshape(-1, 3)\nfor i in range(9):\n"
            "    w = w - f(w, x)"
        ),
        "x: f32[3], y: f32[?V,3]",
    ),
}
UNTYPED = {
    # No rank or no dtype: nothing is shown, and the function says why.
    "a dtype alone": "x = jnp.asarray(ad.load(), jnp.float32) / 255.0\nf(x)",
    "a shape alone": "f(ad.images.reshape(-1, 784))",
    "labels": "f(jax.nn.one_hot(ad.labels, 10))",
    "one or two axes": "f(np.loadtxt('a.csv'))",
    "an item": "f(jnp.array(ad.load()['x'][:, None]))",
    "a product of a number": "f(ad.scale * 2.0)",
}


@pytest.mark.parametrize("name", TYPED)
async def test_the_type_is_what_the_code_says(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    program, types = TYPED[name]
    path = root / f"typed_{'_'.join(name.split())}.py"
    hover = await hover_of(own, path, f"{HEAD}{F}{program}\n")
    assert types in hover.replace("( ", "(").replace(", )", ")"), hover


@pytest.mark.parametrize("name", UNTYPED)
async def test_no_rank_is_guessed(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    path = root / f"untyped_{'_'.join(name.split())}.py"
    hover = await hover_of(own, path, f"{HEAD}{F}{UNTYPED[name]}\n")
    assert "is not traced: called only with unknown `x`" in hover.replace("\\", ""), hover


MODEL = "W = jnp.ones(({rows}, 8))\nx, y = ad.load()\nf(W, x{more})\n"
TOLD = {
    # The body, what is unknown, and the ranks that the rest of the call tells.
    "rows of a table": ("w[jnp.asarray(x)][:, :, None] @ jnp.ones((1, 5))", 50, "", "x: i32[N]"),
    "pairs of rows": ("jax.vmap(lambda i: w[i[0]] @ w[i[1]])(x)", 50, "", "x: i32[N,D]"),
    "labels": (
        "jnp.take_along_axis(jax.vmap(lambda i: w[i[0]] + w[i[1]])(x), y[:, None], axis=1)",
        50,
        ", y",
        "x: i32[N,D], y: i32[N]",
    ),
}
AMBIGUOUS = {
    "any rank": ("jnp.sum(jnp.sin(x)) * w", ""),
    "labels that are broadcast": ("jnp.sum((w[jnp.asarray(x)] - y) ** 2)", ", y"),
    "none fits": ("w @ x + jnp.ones((3, 3, 3, 3, 3))[x]", ""),
}


def of_model(body: str, rows: int, more: str) -> str:
    return f"{HEAD}def f(w, x{more}):\n    return {body}\n\n\n" + MODEL.format(rows=rows, more=more)


def proposing(project: tuple[Session, Path]) -> tuple[Session, Path]:
    own, root = project
    own.configure([str(root)], {**QUIET, "python": sys.executable, "proposeInputs": True})
    return own, root


@pytest.mark.parametrize("name", TOLD)
async def test_a_rank_is_what_the_rest_of_a_call_takes(
    name: str, project: tuple[Session, Path]
) -> None:
    own, root = proposing(project)
    body, rows, more, types = TOLD[name]
    path = root / f"told_{'_'.join(name.split())}.py"
    hover = await hover_of(own, path, of_model(body, rows, more))
    assert types in hover, hover


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_ranks_that_differ_are_none(name: str, project: tuple[Session, Path]) -> None:
    own, root = proposing(project)
    body, more = AMBIGUOUS[name]
    path = root / f"ambiguous_{'_'.join(name.split())}.py"
    hover = await hover_of(own, path, of_model(body, 50, more))
    assert "is not traced: called only with unknown" in hover, hover
