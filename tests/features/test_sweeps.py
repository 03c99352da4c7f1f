"""Sweeps of functions with example inputs: their figures are those of separate compiles."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import pytest
import pytest_asyncio

from jaxsight.features.named_function import compiled_function
from jaxsight.features.sweeps import sweep
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from jaxsight.sweeps.points import Sweep, SweptSize, parse
from tests.quiet import QUIET
from tests.sessions import session_without_spare

Sweeper: TypeAlias = Callable[..., Awaitable[Sweep]]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '''\
import jax
import jax.numpy as jnp


def unrolled(x, n=5):
    """
    Example inputs:
        x: f32[2, 16, 16, 8]
    """
    res = 0
    for i in range(n):
        spectrum = (i + 2) * jnp.fft.rfftn(x + i, axes=(1, 2, 3))
        res = res + jnp.fft.irfftn(spectrum, axes=(1, 2, 3)) ** (i + 2)
    return res


def looped(x, n):
    """
    Example inputs:
        x: f32[2, 16, 16, 8]
        n: 5
    """

    def step(i, res):
        spectrum = (i + 2) * jnp.fft.rfftn(x + i + 1, axes=(1, 2, 3))
        return res + jnp.fft.irfftn(spectrum, axes=(1, 2, 3)) ** (i + 2)

    return jax.lax.fori_loop(0, n, step, jnp.zeros_like(x))


def gram(x, y):
    """
    Example inputs:
        x: f32[B, D]
        y: f32[E, D]
        where B=4, D=64, E=2*B
    Example inputs (wide):
        x: f32[2, 4096]
        y: f32[4, 4096]
    """
    return jnp.sin(x @ x.T) @ jnp.sin(x @ y.T)


def pairs(x):
    """
    Example inputs:
        x: f32[8, 3]
    """
    B, D = x.shape
    return x.reshape(B // 2, 2 * D).sum(axis=1)
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, str]]:
    """A session for this machine's CPU, in which `SOURCE` is open, and its path."""
    root = tmp_path_factory.mktemp("project")
    session = session_without_spare()
    session.configure([str(root)], {**QUIET, "python": sys.executable, "target": "cpu"})
    path = str(root / "model.py")
    session.open(path, SOURCE, in_background=False)
    yield session, path
    await session.aclose()


@pytest.fixture
def swept(opened: tuple[Session, str]) -> Sweeper:
    """Sweep a function of `SOURCE` for this machine's CPU."""
    session, path = opened

    async def swept_by(function: str, *sizes: str, **options: int | None) -> Sweep:
        axes = [size for text in sizes if (size := parse(text)) is not None]
        return await sweep(session.engine, path, function, axes, "cpu", **options)  # type: ignore[arg-type]

    return swept_by


def analysed(
    namespace: dict[str, object], function: str, *arguments: object, **static: int
) -> tuple[int, ...]:
    """JAX's own memory analysis: temporaries, arguments, results."""
    jitted = jax.jit(namespace[function], static_argnames=tuple(static))  # type: ignore[call-overload]
    sizes = jitted.lower(*arguments, **static).compile().memory_analysis()
    return (
        sizes.temp_size_in_bytes,
        sizes.argument_size_in_bytes,
        sizes.output_size_in_bytes,
    )


async def test_memory_is_that_of_the_compiler_at_each_size(swept: Sweeper) -> None:
    namespace: dict[str, object] = {}
    exec(SOURCE, namespace)
    x = jnp.zeros((2, 16, 16, 8))
    for function in ("unrolled", "looped"):
        found = await swept(function, "n=1..3")
        figures = [(p.temp_bytes, p.argument_bytes, p.output_bytes) for p in found.points]
        assert figures == [analysed(namespace, function, x, n=n) for n in (1, 2, 3)]
    found = await swept("gram", "B=3..4", "D=32,64")
    assert [point.sizes for point in found.points] == [
        {"B": 3, "D": 32},
        {"B": 4, "D": 32},
        {"B": 3, "D": 64},
        {"B": 4, "D": 64},
    ]
    for point in found.points:
        rows, columns = point.sizes["B"], point.sizes["D"]
        arguments = jnp.zeros((rows, columns)), jnp.zeros((2 * rows, columns))
        expected = analysed(namespace, "gram", *arguments)
        assert (point.temp_bytes, point.argument_bytes, point.output_bytes) == expected


async def test_the_largest_size_fits_and_the_next_one_does_not(swept: Sweeper) -> None:
    namespace: dict[str, object] = {}
    exec(SOURCE, namespace)
    (largest,) = (await swept("gram", "B=8,16", memory=2**20)).largest
    assert largest.is_exact
    assert largest.compiles <= 8

    def needed(rows: int) -> int:
        return sum(analysed(namespace, "gram", jnp.zeros((rows, 64)), jnp.zeros((2 * rows, 64))))

    assert largest.size is not None
    assert needed(largest.size) <= 2**20 < needed(largest.size + 1)
    assert largest.needed_bytes == needed(largest.size)


async def test_a_size_that_cannot_be_traced_is_a_point_with_its_error(swept: Sweeper) -> None:
    found = await swept("pairs", "B=2..4")
    assert [point.is_compiled for point in found.points] == [True, False, True]
    assert "cannot be traced: " in found.points[1].problem
    assert "reshape" in found.points[1].problem


async def test_a_search_keeps_to_sizes_that_the_function_divides(swept: Sweeper) -> None:
    (largest,) = (await swept("pairs", "B=2..8:2", memory=4001)).largest
    assert largest.is_exact
    assert largest.size is not None
    assert largest.size % 2 == 0


@pytest.mark.parametrize(
    ("function", "size", "message"),
    [
        ("gram", "Q=1..2", "gram has no size Q; it has B, D"),
        ("gram", "E=1..2", "E of gram follows from other sizes; sweep those"),
        ("unrolled", "B=1..2", "unrolled has no size B; it has n"),
        ("absent", "B=1..2", "there is no function absent"),
    ],
)
async def test_what_cannot_be_swept_is_one_clear_message(
    swept: Sweeper,
    function: str,
    size: str,
    message: str,
) -> None:
    with pytest.raises(LookupError) as raised:
        await swept(function, size)
    assert message in str(raised.value)


async def test_a_sweep_changes_nothing_of_what_is_shown(opened: tuple[Session, str]) -> None:
    session, path = opened
    before, first = await compiled_function(session.engine, path, "gram", complete=True)
    await sweep(session.engine, path, "gram", [SweptSize("B", (1, 2))], "cpu")
    after, second = await compiled_function(session.engine, path, "gram", complete=True)
    assert after.answer is before.answer
    assert isinstance(first, LocatedFigures)
    assert isinstance(second, LocatedFigures)
    assert second.compiled is first.compiled
    assert session.sets(path, "gram") == ["", "wide"]


@pytest.mark.slow
async def test_a_sweep_runs_the_function_if_it_is_asked_to(swept: Sweeper) -> None:
    found = await swept("gram", "B=2,4", measured=True)
    assert [point.problem for point in found.points] == ["", ""]
    assert all((point.wall_seconds or 0) > 0 for point in found.points)
    assert all(point.wall_seconds is None for point in (await swept("gram", "B=2")).points)


async def test_what_is_not_here_is_not_run(opened: tuple[Session, str]) -> None:
    session, path = opened
    with pytest.raises(LookupError, match="h100"):
        await sweep(
            session.engine, path, "gram", [SweptSize("B", (1,))], "cuda:h100", measured=True
        )
