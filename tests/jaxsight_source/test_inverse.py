"""`jaxsight.inverse`: what it undoes, how it composes, and what it refuses."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight import NotInvertible, inverse

X = jnp.array([0.1, 0.4, 0.7, 0.9])
GRID = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
# Computed by NumPy, as JAX would compile each operation whenever the file is collected.
MATRIX = jnp.asarray(np.eye(4) * 2 + np.arange(16.0).reshape(4, 4) / 30, jnp.float32)


def comes_back(function: Callable[..., Any], *args: Any, like: tuple[Any, ...] = ()) -> None:
    """Asserts that the inverse gives the arguments for the results, with their shapes and
    dtypes.
    """
    found = inverse(function, *like)(function(*args))
    expected = args[0] if len(args) == 1 else args
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (one.shape, one.dtype) == (jnp.shape(other), jnp.asarray(other).dtype)
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def squash(x: Any) -> Any:
    return jnp.exp(jnp.tanh(x))


def test_inverse_gives_back_what_went_in() -> None:
    assert jnp.allclose(inverse(squash)(squash(1.0)), 1.0)


def test_inverse_is_traced_as_the_inverse_operations_alone() -> None:
    jaxpr = jax.make_jaxpr(inverse(squash))(squash(1.0))
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["log", "atanh"]


def test_inverse_composes_with_jit_vmap_and_grad() -> None:
    found = jax.jit(jax.vmap(jax.grad(inverse(squash))))((jnp.arange(5) + 1.0) / 5.0)
    np.testing.assert_allclose(found, [-3.1440797, 15.584931, 2.2551253, 1.3155028, 1.0], rtol=1e-4)


def test_inverse_of_an_inverse_is_the_function() -> None:
    np.testing.assert_allclose(inverse(inverse(squash))(X), squash(X), rtol=1e-5)


def test_derivative_with_respect_to_what_the_function_closes_over() -> None:
    def solved(scale: Any) -> Any:
        return inverse(lambda x: jnp.exp(x * scale))(3.0)

    np.testing.assert_allclose(jax.grad(solved)(2.0), -np.log(3.0) / 4, rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + 1,
        lambda x: 3 - x,
        lambda x: 3 / x,
        lambda x: (x + 1) / 4,
        lambda x: -x,
        lambda x: x + x,
        lambda x: x * x,
        jnp.square,
        jnp.sqrt,
        jnp.cbrt,
        lax.rsqrt,
        jnp.reciprocal,
        lambda x: x**3,
        lambda x: (-x) ** 5,
        lambda x: x**4,
        lambda x: x**-3,
        lambda x: x**2.5,
        lambda x: 2.0**x,
        jnp.exp,
        jnp.exp2,
        jnp.expm1,
        jnp.log,
        jnp.log2,
        jnp.log10,
        jnp.log1p,
        jnp.sin,
        jnp.cos,
        jnp.tan,
        jnp.arcsin,
        jnp.arccos,
        jnp.arctan,
        jnp.sinh,
        jnp.cosh,
        jnp.tanh,
        jnp.arcsinh,
        lambda x: jnp.arccosh(x + 1),
        jnp.arctanh,
        jax.nn.sigmoid,
        jax.nn.log_sigmoid,
        jax.nn.softplus,
        jax.scipy.special.logit,
        jax.scipy.special.erf,
        jax.scipy.special.erfc,
        jax.scipy.special.erfinv,
        lambda x: jnp.logaddexp(x, 0.5),
        lax.stop_gradient,
        lambda x: lax.reduce_precision(x, 8, 23),
        lambda x: lax.bitcast_convert_type(x, jnp.uint32).view(jnp.float32),
    ],
)
def test_elementwise_operations_are_undone(function: Callable[[Any], Any]) -> None:
    comes_back(function, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T,
        lambda x: x[::-1, ::-1],
        lambda x: x.reshape(3, 2),
        lambda x: x.ravel(),
        lambda x: jnp.expand_dims(x, (0, 2)),
        lambda x: jnp.expand_dims(x, 0).squeeze(),
        lambda x: lax.reshape(x, (6,), (1, 0)),
        lambda x: jnp.moveaxis(x, 0, 1).copy(),
        lambda x: tuple(jnp.split(x, 3, axis=1)),
        lambda x: (x[:, :1], x[:, 1:]),
        lambda x: (x[:, ::2], x[:, 1::2]),
        lambda x: (x[0], x[1]),
        lambda x: (x[1:, :], x[:1, :2], x[0, 2]),
        lambda x: x[:, np.array([2, 0, 1])],
        lambda x: jnp.roll(x, 1, axis=1),
        lambda x: jnp.concatenate([jnp.ones((2, 1)), x], axis=1),
        lambda x: jnp.stack([x, jnp.zeros_like(x)]),
        lambda x: jnp.broadcast_to(x[:, None], (4, 2, 5, 3)),
        lambda x: jnp.pad(x, ((1, 2), (0, 1))),
        lambda x: lax.pad(x, 0.0, [(0, 0, 1), (1, 0, 2)]),
        lambda x: lax.optimization_barrier((x, x))[1],
    ],
)
def test_moved_elements_are_put_back(function: Callable[[Any], Any]) -> None:
    comes_back(function, GRID, like=(GRID,))


@pytest.mark.parametrize(
    "function",
    [
        jnp.cumsum,
        jnp.cumprod,
        lambda x: lax.cumsum(x, reverse=True),
        lambda x: x @ MATRIX,
        lambda x: MATRIX @ x,
        lambda x: x @ MATRIX.T + 1,
        lambda x: jax.scipy.linalg.solve_triangular(MATRIX, x, lower=True),
        lambda x: jax.scipy.linalg.solve_triangular(MATRIX, x, trans=1),
    ],
)
def test_linear_maps_are_undone(function: Callable[[Any], Any]) -> None:
    comes_back(function, X)


def test_products_with_a_matrix_are_undone_in_any_number_of_dimensions() -> None:
    batch = jnp.arange(24.0).reshape(2, 3, 4) / 10
    comes_back(lambda x: x @ MATRIX, batch)
    comes_back(lambda x: jnp.einsum("ij,bjc->bic", MATRIX, x), batch.mT, like=(batch.mT,))


def test_fourier_transforms_are_undone() -> None:
    comes_back(jnp.fft.fft, X * (1 + 2j))
    comes_back(jnp.fft.rfft, X, like=(X,))


def test_complex_numbers_are_put_together_and_taken_apart() -> None:
    comes_back(lambda a, b: jnp.conj(lax.complex(a, b)), X, X + 1, like=(X, X))


def test_integers_are_undone_exactly() -> None:
    numbers = jnp.array([-7, 0, 5, 1 << 30])
    comes_back(lambda n: ~(n ^ 12345) - 99, numbers)
    comes_back(lambda n: n * 2 + 1, jnp.array([-3, 0, 4]))
    assert inverse(lambda n: n * 2 + 1)(7) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bfloat16", "float32"),
        ("int8", "float16"),
        ("uint8", "int32"),
        ("bool", "int8"),
        ("float32", "complex64"),
    ],
)
def test_conversions_that_lose_nothing_are_undone(before: str, after: str) -> None:
    values = jnp.array([0, 1, 1]).astype(before)
    comes_back(lambda x: x.astype(after), values, like=(values,))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float32", "bfloat16"),
        ("int32", "float32"),
        ("int8", "uint8"),
        ("float16", "bfloat16"),
        ("float32", "int32"),
    ],
)
def test_conversions_that_lose_something_are_refused(before: str, after: str) -> None:
    values = jnp.array([0, 1, 1]).astype(before)
    with pytest.raises(NotInvertible, match=f"from {before} to {after} loses information"):
        inverse(lambda x: x.astype(after), values)(values.astype(after))


@pytest.mark.parametrize(
    "wrapped",
    [
        jax.jit(squash),
        jax.jit(jax.jit(lambda x: squash(x) * 2)),
        jax.checkpoint(squash),
        jax.vmap(squash),
        lambda x: jax.named_call(squash, name="inner")(x),
    ],
)
def test_calls_are_looked_into(wrapped: Callable[[Any], Any]) -> None:
    comes_back(wrapped, X)


def test_functions_with_derivatives_of_their_own_are_looked_into() -> None:
    @jax.custom_jvp
    def doubled(x: Any) -> Any:
        return x * 2

    @jax.custom_vjp
    def tripled(x: Any) -> Any:
        return x * 3

    doubled.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    tripled.defvjp(lambda x: (x * 3, None), lambda _, g: (g * 3,))
    comes_back(lambda x: tripled(doubled(x)) + 1, X)


def test_function_of_a_users_is_not_taken_for_one_of_jaxs_by_its_name() -> None:
    @jax.custom_jvp
    def logaddexp(a: Any, b: Any) -> Any:
        return a * b

    logaddexp.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] + t[1] * p[0]))
    comes_back(lambda x: logaddexp(x, 2.0), X)


def test_coupling_layers_are_undone() -> None:
    def coupling(a: Any, b: Any) -> Any:
        hidden = jax.nn.relu(jnp.sin(a) @ MATRIX)
        return a, b * jnp.exp(hidden) + jnp.cos(a)

    comes_back(coupling, X, X + 1)


def test_what_is_known_runs_forwards_with_its_own_derivatives() -> None:
    def coupling(a: Any, b: Any) -> Any:
        return jax.jit(lambda a, b: (a, b + jax.nn.relu(a)))(a, b)

    _, derivative = jax.jvp(
        lambda a: inverse(coupling)((a, jnp.float32(1.0)))[1],
        (jnp.float32(0.0),),
        (jnp.float32(1.0),),
    )
    assert derivative == 0.0


def test_a_whole_flow_is_undone() -> None:
    def layer(x: Any, permutation: Any) -> Any:
        a, b = jnp.split(x, 2)
        b = b * jnp.exp(jax.nn.silu(a)) + a
        return jnp.concatenate([a, b])[permutation] @ MATRIX

    def flow(x: Any) -> Any:
        for permutation in (np.array([3, 1, 0, 2]), np.array([1, 2, 3, 0])):
            x = layer(x, permutation)
        return jnp.sinh(x)

    comes_back(flow, X)
    comes_back(jax.vmap(flow), jnp.stack([X, X * 0.5, -X]))


def test_loops_of_fixed_length_run_backwards() -> None:
    comes_back(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x), X)


def test_scan_gives_its_start_and_its_inputs() -> None:
    def running(start: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            y = x * jnp.exp(carry)
            return carry + y, y

        return lax.scan(step, start, xs)

    comes_back(running, jnp.float32(0.1), X, like=(jnp.float32(0.1), X))


def test_scan_over_known_weights_runs_backwards() -> None:
    weights = jnp.arange(8.0).reshape(4, 2) / 100

    def layers(x: Any) -> Any:
        def step(carry: Any, w: Any) -> Any:
            return jnp.tanh(carry) * jnp.exp(w[0]) + w[1], None

        return lax.scan(step, x, weights, reverse=True)[0]

    comes_back(layers, X)


def test_autoregressive_scan_is_followed_forwards() -> None:
    def autoregressive(xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            return carry + x, x * jnp.exp(jnp.sin(carry)) + carry

        return lax.scan(step, 0.0, xs)[1]

    comes_back(autoregressive, X)


def test_scans_within_scans_are_undone() -> None:
    def inner(x: Any, n: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.sinh(c) + n, None), x, None, length=2)[0]

    comes_back(lambda x: lax.scan(lambda c, n: (inner(c, n), None), x, X / 10)[0], X / 10)


def test_branch_that_is_known_is_undone() -> None:
    def chosen(flag: Any, x: Any) -> Any:
        return flag, lax.cond(flag, lambda x: x * 2, jnp.sinh, x)

    for flag in (True, False):
        comes_back(chosen, jnp.array(flag), X, like=(jnp.array(flag), X))


def test_arguments_and_results_keep_their_nesting() -> None:
    comes_back(lambda tree: {"a": tree["b"] * 2, "b": -tree["a"]}, {"a": X, "b": X + 1})
    comes_back(lambda a, rest: [a + 1, {"x": rest[0] - a}], X, (X,), like=(X, (X,)))


def test_results_are_given_as_one_value_or_as_several() -> None:
    def pair(a: Any, b: Any) -> Any:
        return a + 1, b * 2

    assert inverse(pair)((2.0, 6.0)) == inverse(pair)(2.0, 6.0) == (1.0, 3.0)


def test_keyword_arguments_are_known() -> None:
    def scaled(x: Any, scale: Any) -> Any:
        return x * scale

    assert inverse(scaled)(6.0, scale=2.0) == 3.0
    assert jax.jit(inverse(scaled))(6.0, scale=2.0) == 3.0


def test_arguments_of_other_shapes_are_asked_for() -> None:
    def laid_out(x: Any) -> Any:
        return x.reshape(3, 2)

    with pytest.raises(
        TypeError, match=r"returns f32\[3,2\] for .* but its inverse got f32\[2,3\]; pass example"
    ):
        inverse(laid_out)(jnp.ones((2, 3)))
    with pytest.raises(
        TypeError, match=r"does not take as many arguments as it returns results; pass example"
    ):
        inverse(lambda a, b: a)(X)
    struct = jax.ShapeDtypeStruct((6,), jnp.float32)
    comes_back(laid_out, jnp.arange(6.0), like=(struct,))


def test_results_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match=r"returns \(f32\[4\], f32\[4\]\)"):
        inverse(lambda a: (a, a), X)(X)


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expects results of \w+, got str"):
        inverse(squash)("x")
    with pytest.raises(TypeError, match="got nothing"):
        inverse(squash)()
    with pytest.raises(TypeError, match="expected a function to invert, got int"):
        inverse(3)  # type: ignore[arg-type]


def test_nothing_is_run_that_the_answer_does_not_need() -> None:
    def noisy(x: Any) -> Any:
        jax.debug.print("{}", x)
        jnp.sum(jnp.cos(x))
        return x * 2

    jaxpr = jax.make_jaxpr(inverse(noisy))(X)
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["div"]


def test_long_chains_and_deep_calls_do_not_recurse() -> None:
    def chain(x: Any) -> Any:
        for _ in range(2000):
            x = -x
        return x

    comes_back(chain, X)
    nested = squash
    for _ in range(40):
        nested = jax.jit(lambda x, inner=nested: inner(x) + 1.0 - 1.0)
    comes_back(nested, X)


def refused(function: Callable[..., Any], *args: Any) -> NotInvertible:
    with pytest.raises(NotInvertible) as caught:
        inverse(function, *args)(function(*args))
    return caught.value


def line_of(error: NotInvertible) -> str:
    assert error.file == __file__
    return linecache.getline(error.file, error.line).strip()


def test_error_names_the_operation_and_the_line() -> None:
    def lossy(x: Any) -> Any:
        y = x * 2
        total = y.sum()
        return jnp.exp(total)

    error = refused(lossy, X)
    assert error.primitive == "reduce_sum"
    assert line_of(error) == "total = y.sum()"
    assert re.fullmatch(
        r'lossy cannot be inverted: reduce_sum adds elements up, and many operands have the same sum\n  File ".*", line \d+\n    total = y.sum\(\)',
        str(error),
    )


def test_error_in_a_loop_names_the_line_in_its_body() -> None:
    def looped(x: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            return jnp.abs(carry)

        return lax.fori_loop(0, 3, step, x)

    error = refused(looped, X)
    assert (error.primitive, line_of(error)) == ("abs", "return jnp.abs(carry)")


def test_error_inside_a_function_of_jaxs_is_on_the_line_that_calls_it() -> None:
    def called(x: Any) -> Any:
        return jax.nn.leaky_relu(x)

    refused(lambda x: jax.nn.leaky_relu(x), X)  # JAX keeps what it traced here first
    error = refused(called, X)
    assert line_of(error) == "return jax.nn.leaky_relu(x)"
    assert "(in leaky_relu)" in str(error)


@pytest.mark.parametrize(
    ("function", "primitive", "reason"),
    [
        (lambda x: x + jnp.sin(x), "add", "has two unknown operands"),
        (lambda x: x * 0.0, "mul", "multiplies by 0"),
        (lambda x: x**0, None, "do not depend on argument 0"),
        (lambda x: jnp.where(x > 0, x, 2 * x), "select_n", "has no inverse"),
        (lambda x: x[0] + X, "add", "broadcasts its unknown operand"),
        (lambda x: x[:2], "slice", "does not determine 2 of the 4 elements"),
        (lambda x: x[jnp.array([0, 1, 2, 2])], "gather", "does not determine 1 of the 4 elements"),
        (lambda x: x[jnp.argmax(x)], None, "unknown"),
        (
            lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x),
            "while",
            "a number of iterations that its results do not tell",
        ),
        (
            lambda x: lax.cond(x[0] > 0, jnp.sinh, jnp.tanh, x),
            "cond",
            "selects its branch by an unknown value",
        ),
        (lambda x: jnp.fft.irfft(x[:2] + 1j * x[2:]), None, "rank 2 from 4 elements"),
        (lambda x: x @ MATRIX[:, :2], "dot_general", "square matrix"),
        (lambda x: (x * 10).astype(int) // 3, None, ""),
        (lambda x: jnp.ones(3), None, "do not depend on argument 0"),
    ],
)
def test_what_forgets_its_argument_is_refused(
    function: Callable[[Any], Any], primitive: str | None, reason: str
) -> None:
    error = refused(function, X)
    assert reason in str(error)
    if primitive is not None:
        assert error.primitive == primitive


def test_argument_that_the_results_leave_out_is_named() -> None:
    error = refused(lambda tree, x: x * 2, {"w": X}, X)
    assert "its results do not depend on argument 0['w']" in str(error)


def test_reads_and_writes_of_a_ref_are_undone() -> None:
    def running(x: Any) -> Any:
        buffer = jax.new_ref(x)

        def step(i: Any, _: Any) -> Any:
            buffer[...] = buffer[...] * 2.0 + i
            return _

        lax.fori_loop(0, 3, step, None)
        old = jax.ref.swap(buffer, slice(0, 2), buffer[:2] + 1.0)
        return buffer[...], old

    comes_back(running, X, like=(X,))
    forgetful = lambda x: jax.freeze(jax.new_ref(x[:2]))
    assert "does not determine 2 of the 4" in refused(forgetful, X).reason


def test_system_with_more_results_than_unknowns_is_solved() -> None:
    comes_back(lambda x: (x[:2] + x[2:], x[:2] - x[2:], x.sum()), X, like=(X,))
