"""In Python: points, and the largest size that fits, as the compiler says (`tests/sweeps/largest.py`)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import jaxsight
from jaxsight.library.measuring import NotHere
from jaxsight.sweeps.points import BadSizes
from tests.searches import part
from tests.sweeps.largest import search, verdict
from tests.sweeps.programs import PROGRAMS


def unrolled(x, n):
    for i in range(n):
        x = jnp.sin(x) @ x.T if i % 2 else jnp.cos(x)
    return x


@pytest.mark.parametrize("name", ["softmax", "gram", "step", "donated", "barred"])
def test_the_largest_size_is_that_of_the_compiler(name: str) -> None:
    assert verdict(name, search(name, "cpu"), "cpu") == ""


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.parametrize("name", part([*PROGRAMS]))
def test_the_largest_size_of_each_program_is_that_of_the_compiler(name: str) -> None:
    assert verdict(name, search(name, "cpu"), "cpu") == ""


def test_a_size_is_passed_as_an_argument() -> None:
    x = jnp.ones((4, 4))
    found = jaxsight.sweep(unrolled, n=range(1, 4), target="cpu")(x)
    assert [point.sizes for point in found.points] == [{"n": 1}, {"n": 2}, {"n": 3}]
    expected = [jaxsight.kernels(lambda x, n=n: unrolled(x, n), target="cpu")(x) for n in (1, 2, 3)]
    assert [point.kernel_count for point in found.points] == [
        each.kernel_count for each in expected
    ]
    assert [point.temp_bytes for point in found.points] == [each.temp_bytes for each in expected]
    assert found.largest == ()


@pytest.mark.slow
def test_each_size_is_run_where_the_device_is_here() -> None:
    def repeated(x: jax.Array, n: int) -> jax.Array:
        for _ in range(n):
            x = jnp.sort(jnp.sin(x))
        return x

    x = jax.ShapeDtypeStruct((1000,), "float32")
    found = jaxsight.sweep(repeated, n=[1, 8], target="cpu", measure=True)(x)
    first, last = (point.wall_seconds for point in found.points)
    assert first is not None
    assert last is not None
    assert 0 < first < last
    with pytest.raises(NotHere, match="cuda:h100 is not the device that JAX uses here"):
        jaxsight.sweep(repeated, n=[1], target="cuda:h100", measure=True)(x)


def test_a_jitted_function_keeps_its_static_arguments() -> None:
    jitted = jax.jit(unrolled, static_argnames="n")
    found = jaxsight.sweep(unrolled, jitted, n=[1, 2], target="cpu")(jnp.ones((4, 4)))
    first, second = found.sweeps
    assert [p.temp_bytes for p in first.points] == [p.temp_bytes for p in second.points]
    assert [sweep.function for sweep in found.sweeps] == ["unrolled", "unrolled"]
    assert str(found).count("unrolled on cpu") == 2


def test_a_function_of_sizes_makes_an_argument() -> None:
    def shape(B: int, D: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((B, D), jnp.float32)

    found = jaxsight.sweep(jnp.sin, B=[1, 2], D=[8], target="cpu")(shape)
    assert [point.argument_bytes for point in found.points] == [32, 64]
    assert "<svg" in found._repr_html_()
    assert found.csv().startswith("function,target,B,D,")
    with pytest.raises(LookupError, match="unknown figure 'x'; use one of kernels, launches, temp"):
        found.svg("x")


def test_a_size_that_the_function_rejects_is_a_point_with_its_error() -> None:
    def halves(x):
        return x.reshape(2, -1).sum(axis=0)

    found = jaxsight.sweep(halves, B=[2, 3], target="cpu")(
        lambda B: jax.ShapeDtypeStruct((B,), jnp.float32)
    )
    assert found.points[0].problem == ""
    assert found.points[1].problem.startswith("cannot be traced: TypeError: cannot reshape")


@pytest.mark.parametrize(
    ("functions", "sizes", "message"),
    [
        ((), {"n": 3}, "no function to sweep"),
        ((jnp.sin,), {}, "no sizes to sweep; pass e.g. n=range\\(1, 10\\)"),
        ((jnp.sin,), {"n": []}, "invalid sizes for n"),
    ],
)
def test_what_cannot_be_swept_says_why(
    functions: tuple[object, ...], sizes: dict[str, object], message: str
) -> None:
    with pytest.raises(BadSizes, match=message):
        jaxsight.sweep(*functions, **sizes)  # type: ignore[arg-type]


def test_a_size_that_nothing_depends_on_is_an_error() -> None:
    with pytest.raises(BadSizes, match="no argument of sin depends on B; pass a function of it"):
        jaxsight.sweep(jnp.sin, B=[1, 2], target="cpu")(jnp.ones(3))
