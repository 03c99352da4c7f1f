"""Text that is not proved is refused, in either style; what is given says how it was proved."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight import sourcerize
from jaxsight_source.api import write
from jaxsight_source.errors import Unsourceable
from jaxsight_source.options import SourceOptions, Style
from jaxsight_source.proof.running import Differs, run_beside
from jaxsight_source.written import Written, load
from tests.jaxsight_source.harnesses import bits

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)

RoundTrip = Callable[..., Written]


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_text_says_how_it_was_proved(style: Any) -> None:
    source = sourcerize(lambda x: jnp.sin(x).sum() * 2, style=style, name="f")(X)
    assert source.proofs == ("jaxpr", "eagerly", "under jit", "under grad")
    assert not source.not_run


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: jax.debug.print("{}", x) or x, "effects"),
        (lambda x: jnp.ones((4096, 4096)) @ jnp.ones(4096) + x.sum(), "array of more than 16 MiB"),
        (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), "may not terminate"),
    ],
)
def test_functions_are_not_run_that_may_do_harm(
    function: Callable[..., Any], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source = sourcerize(function, name="f")(jax.ShapeDtypeStruct((2, 3), jnp.float32))
    assert source.proofs == ("jaxpr",)
    assert why in source.not_run
    assert not capfd.readouterr().out


def ran(text: Callable[..., Any], original: Callable[..., Any], *args: Any) -> tuple[str, ...]:
    leaves = jax.tree.leaves(original(*args))
    numbers = [isinstance(leaf, (int, float)) for leaf in leaves]
    return run_beside(text, original, jax.make_jaxpr(original)(*args), args, numbers).ways


def test_what_only_fails_when_it_is_run_is_found() -> None:
    def original(x: Any) -> Any:
        return x * 2, jnp.float32(1)

    assert ran(lambda x: (x + x, jnp.float32(1)), original, X) == (
        "eagerly",
        "under jit",
        "under grad",
    )
    for text, why in [
        (lambda x: (x * 3, jnp.float32(1)), "different values"),
        (lambda x: (x * 2, 1.0), "a Python number, not an array"),
        (lambda x: (x * 2, jnp.asarray(1.0)), "different weak type"),
        (lambda x: (x * 2, jnp.int32(1)), "int32"),
        (lambda x: (x * 2, (1.0).astype(jnp.float32)), "AttributeError"),
        (lambda x: (lax.stop_gradient(x) * 2, jnp.float32(1)), "gradient"),
    ]:
        with pytest.raises(Differs, match=why):
            ran(text, original, X)


def test_results_are_numbers_or_arrays_as_they_were() -> None:
    def numbers(x: Any) -> Any:
        return jnp.array(3), jnp.float32(1), 2, 2.5, True, jnp.asarray(3.0), jnp.bool_(True), x

    styles: tuple[Style, ...] = ("lax", "pretty")
    for style in styles:
        written = write(numbers, (X,), {}, SourceOptions(style, run=True))
        assert written.ran.ways
        made, expected = load(written)(X), numbers(X)
        assert bits(made) == bits(expected)
        assert list(map(type, made)) == list(map(type, expected))


def loop_over_a_number(x: Any) -> Any:
    return lax.scan(lambda c, _: ((c[0], c[1] * c[0]), None), (2.0, x), None, length=3)


def fori_over_a_number(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, c: (c[0], c[1] * c[0]), (2.0, x))


def dropping(x: Any) -> Any:
    unused = jnp.sin(x)

    @jax.custom_jvp
    def doubled(y: Any) -> Any:
        jnp.cos(unused)
        return y * 2

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 3))
    return doubled(x)


@pytest.mark.parametrize("function", [loop_over_a_number, fori_over_a_number, dropping])
@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_programs_that_came_out_as_others(
    round_trip: RoundTrip, function: Callable[..., Any], style: str
) -> None:
    round_trip(function, X, style=style)


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_rule_that_closes_over_an_argument_is_the_same_rule(
    round_trip: RoundTrip, style: str
) -> None:
    def scaled(x: Any, y: Any) -> Any:
        @jax.custom_jvp
        def f(z: Any) -> Any:
            return z * x

        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * x * 3))

        @jax.custom_vjp
        def g(z: Any) -> Any:
            return z + x

        g.defvjp(lambda z: (g(z), None), lambda _, ct: (ct * x,))
        return lax.fori_loop(0, 2, lambda _, c: f(c), g(y)).sum()

    made = load(round_trip(scaled, X, X + 2, style=style))
    expected, found = (jax.grad(f, 1)(X, X + 2) for f in (scaled, made))
    np.testing.assert_array_equal(expected, found)


def test_captured_array_with_equal_first_elements(round_trip: RoundTrip) -> None:
    segments = jnp.array([0, 0, 1, 1, 2, 2, 3, 3, 4])
    round_trip(lambda x: x[segments], jnp.arange(6.0))


def test_solve_lists_what_it_captures_in_any_order(round_trip: RoundTrip) -> None:
    matrix = jnp.eye(3) * 3 + 0.1

    def solved(b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda v: matrix @ v,
            b,
            lambda _, v: v / (matrix @ v),
            lambda _, v: v / (matrix.T @ v),
        )

    round_trip(solved, jnp.ones(3))


def test_constants_that_only_dead_code_reads_are_left_out(round_trip: RoundTrip) -> None:
    large = jnp.asarray(np.random.default_rng(0).normal(size=(800, 800)))

    def unused(x: Any) -> Any:
        large @ jnp.ones(800)
        return x * 2

    assert "_CONSTANT" not in round_trip(unused, X).text


@pytest.mark.parametrize("name", ["relu_", "_private", "__dunder__"])
def test_functions_keep_the_underscores_of_their_names(name: str) -> None:
    def function(x: Any) -> Any:
        return x * 2

    function.__name__ = name
    assert f"def {name}(x):" in sourcerize(function)(X)


class Colour(enum.Enum):
    RED = 1

    def __lt__(self, other: object) -> bool:
        return False


def test_keys_that_no_text_can_say_take_over_the_structure(round_trip: RoundTrip) -> None:
    class Local(enum.Enum):
        RED = 1

        def __lt__(self, other: object) -> bool:
            return False

    for key in (Colour.RED, Local.RED):
        round_trip(lambda d, key=key: {key: d[key] * 2}, {key: X})


def test_function_that_is_another_one_when_it_is_traced_again_is_refused() -> None:
    turn = itertools.cycle([jnp.sin, jnp.cos])
    with pytest.raises(Unsourceable, match="not the same program: gradient 0 has different values"):
        sourcerize(lambda x: next(turn)(x), name="f")(X)


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_what_was_proved_before_is_written_alike_with_its_imports(style: Style) -> None:
    import jax.extend.random

    def drawn_bits(key: Any, x: Any) -> Any:
        drawn = jax.extend.random.threefry_prng_impl.random_bits(key, 32, (3,))
        return drawn, jax.lax.cumsum(x, axis=1), x[:, jnp.array([0, 2])]

    key, x = jnp.zeros(2, jnp.uint32), jnp.ones((2, 3), jnp.float32)
    first, second = (sourcerize(drawn_bits, style=style, run=False)(key, x) for _ in range(2))
    assert first == second
    assert "jax.extend.random" in first
