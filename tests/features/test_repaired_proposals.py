"""Example inputs that jaxsight proposes after an error, or after a trace that computes nothing."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOLVERS = '''\
from abc import ABC, abstractmethod


class AbstractSolver(ABC):
    """A solver."""

    @abstractmethod
    def step(self, x): ...


class Euler(AbstractSolver):
    def step(self, x):
        return x * 0.5
'''
CASES = {
    "sizes that are compared": (
        """
TABLE = {"product": lambda a, b: jnp.sin(a) @ b}

def scores(x, y):
    return TABLE["product"](jnp.cos(x), y)
""",
        "x, y: f32[4, 4]",
    ),
    "a number that is optional": (
        """
def segment_sum(data, segment_ids, num_segments=None):
    count = int(segment_ids.max()) + 1 if num_segments is None else num_segments
    return jnp.zeros((count, data.shape[-1])).at[segment_ids].add(data)
""",
        "data: f32[8, 8], segment_ids: i32[8], num_segments: 2",
    ),
    "the number of arguments": (
        """
TABLE = {"start": lambda f, x: f(0.0, x, x)}

def run(field: Callable, x):
    return TABLE["start"](field, jnp.sin(x))
""",
        "field = lambda x, x1, x2: x, x: f32[4, 8]",
    ),
    "a result that is unpacked": (
        """
def step(loss, x):
    def body(call):
        value, extra = call(x)
        return value * 2 + extra
    return [body(f) for f in (loss,)]
""",
        "loss = lambda x: (x, x), x: f32[4, 8]",
    ),
    "arguments that are optional": (
        """
def masked(x, scale=None, mask=None):
    if scale is not None:
        x = x * scale
    return x if mask is None else jnp.where(mask, x, 0.0)
""",
        "x: f32[4, 8], scale: f32[], mask: bool[4, 8]",
    ),
    "keys": (
        """
def raw(x):
    return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
""",
        "x: key<fry>[]",
    ),
    "another choice": (
        """
def reduce(x, mode):
    if mode == "none":
        return x
    if mode == "sum":
        return x.sum()
    raise ValueError(mode)
""",
        "x: f32[4, 8], mode: 'sum'",
    ),
    "numbers that may be arrays": (
        """
def as_key(seed: int | jax.Array):
    return jax.random.key(seed)
""",
        "seed: i32[]",
    ),
    "axes that are not the same": (
        """
def moved(x, source, destination):
    assert x.ndim == 3 and isinstance(source, int) and isinstance(destination, int)
    return jnp.transpose(x, ((0, 1, 2), (1, 0, 2))[source != destination])
""",
        "x: f32[4, 8, 16], source: 0, destination: 4",
    ),
    "the items of a tuple": (
        """
def noise(key, size):
    def shape():
        h, w = size
        return (h, w)
    return jax.random.normal(key, shape())
""",
        "key: key<fry>[], size: (4, 4)",
    ),
    "ranks that are compared": (
        """
TABLE = {"join": lambda a, b: jnp.concatenate([a, b])}

def joined(x, y):
    assert y.ndim == 3
    return TABLE["join"](jnp.sin(x), jnp.cos(y))
""",
        "x: f32[2, 4, 8], y: f32[16, 4, 8]",
    ),
    "sizes of a reshaped array": (
        """
def heads(x, w):
    B, T, D = x.shape
    return (x @ w).reshape(B, T, 2, D // 2)
""",
        "x: f32[4, 8, 16], w: f32[16, 16]",
    ),
    "the triangle of a matrix": (
        """
def matrix(x):
    n = int((8 * x.shape[-1] + 1) ** 0.5) // 2
    if n * (n + 1) // 2 != x.shape[-1]:
        raise ValueError("not the triangle of a matrix")
    return jnp.zeros((*x.shape[:-1], n, n)).at[..., *jnp.tril_indices(n)].set(x)
""",
        "x: f32[4, 6]",
    ),
    "another dtype of one array": (
        """
def promoted(x, y):
    return x.astype(y.dtype).dtype, x if x.dtype == y.dtype else x.astype(y.dtype)
""",
        "x: i32[4, 8], y: f32[4, 8]",
    ),
    "a number that is compared": (
        """
def interpolated(x, order: int):
    if order == 0:
        return jnp.round(x)
    if order == 1:
        return jnp.floor(x)
    raise NotImplementedError("this order")
""",
        "x: f32[4, 8], order: 0",
    ),
    "subclasses in an imported file": (
        """
from solvers import AbstractSolver, Euler

def solve(solver: AbstractSolver, x):
    return solver.step(x)
""",
        "solver = Euler(), x: f32[4, 8]",
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, Path]]:
    """A session on a folder with `solvers.py`."""
    folder = tmp_path_factory.mktemp("repaired")
    (folder / "solvers.py").write_text(SOLVERS, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nname = "x"', encoding="utf-8")
    session = session_without_spare()
    session.configure([str(folder)], {**QUIET, "python": sys.executable})
    yield session, folder
    await session.aclose()


@pytest.mark.parametrize("case", CASES)
async def test_proposals_are_repaired(session: tuple[Session, Path], case: str) -> None:
    source, expected = CASES[case]
    path = str(session[1] / "model.py")
    text = f"from collections.abc import Callable\nimport jax\nimport jax.numpy as jnp\n\n{source}"
    session[0].open(path, text)
    document = await session[0].engine.documents.read(path)
    assert document is not None
    chunk, function = document.module.functions[0]
    outcome = await session[0].engine.proposals.outcome(document, chunk, function)
    session[0].engine.close(path)
    assert outcome is not None
    assert not outcome.trivial
    assert outcome.tried <= 12
    assert [proposal.title for proposal in outcome.traced[:1]] == [expected]
