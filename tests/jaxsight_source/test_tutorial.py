"""JAX's tutorial *Writing custom Jaxpr interpreters in JAX*, with jaxsight's API, and its exercises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from jaxsight import NotInvertible
from jaxsight_source import inverse, inverse_registry
from jaxsight_source.jaxprs.base import Environment

X = jnp.array([0.1, 0.4, 0.7, 0.9])


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    yield
    inverse_registry.clear()


def f(x: Any) -> Any:
    return jnp.exp(jnp.tanh(x))


def names(function: Any, *args: Any) -> list[str]:
    return [equation.primitive.name for equation in jax.make_jaxpr(function)(*args).eqns]


def test_one_line_registers_the_inverse_of_a_unary_primitive() -> None:
    inverse_registry[lax.exp_p] = jnp.log
    inverse_registry[lax.tanh_p] = jnp.arctanh
    assert jnp.allclose(inverse(f)(f(1.0)), 1.0)
    assert names(inverse(f), f(1.0)) == ["log", "atanh"]
    gradients = jax.jit(jax.vmap(jax.grad(inverse(f))))((jnp.arange(5) + 1.0) / 5.0)
    np.testing.assert_allclose(
        gradients, [-3.1440797, 15.584931, 2.2551253, 1.3155028, 1.0], rtol=1e-4
    )


def test_registered_function_replaces_the_built_in_rule() -> None:
    inverse_registry[lax.exp_p] = lambda y: jnp.log2(y) * np.float32(np.log(2))
    assert names(inverse(jnp.exp), X) != names(jnp.log, X)
    np.testing.assert_allclose(inverse(jnp.exp)(jnp.exp(X)), X, rtol=1e-5)
    del inverse_registry[lax.exp_p]
    assert names(inverse(jnp.exp), X) == ["log"]


def rotate_p() -> Primitive:
    """A primitive of the user's, of an angle and a point in the complex plane."""
    rotate = Primitive("rotate")
    rotate.def_abstract_eval(lambda angle, point: point)  # type: ignore[no-untyped-call]
    implementation = lambda angle, point: point * jnp.exp(1j * angle)
    rotate.def_impl(implementation)  # type: ignore[no-untyped-call]
    mlir.register_lowering(rotate, mlir.lower_fun(implementation, multiple_results=False))
    return rotate


def test_primitive_with_several_operands_has_a_function_for_each() -> None:
    """Exercise 1: primitives whose inputs are partially known."""
    rotate = rotate_p()
    point = jnp.array([1 + 2j, -1j])
    turn = lambda x: rotate.bind(jnp.float32(0.3), x) + 1
    with pytest.raises(NotInvertible, match="rotate has no inverse"):
        inverse(turn)(turn(point))
    inverse_registry[rotate] = (None, lambda y, angle: rotate.bind(-angle, y))
    np.testing.assert_allclose(inverse(turn)(turn(point)), point, rtol=1e-5)
    angle = lambda x: rotate.bind(x, jnp.ones((), jnp.complex64))
    with pytest.raises(NotInvertible, match="no registered inverse for operand 0"):
        inverse(angle, jnp.float32(1.0))(angle(jnp.float32(1.0)))
    both = lambda x: rotate.bind(x, x + 0j)
    with pytest.raises(NotInvertible, match="rotate has 2 unknown operands"):
        inverse(both, jnp.float32(1.0))(both(jnp.float32(1.0)))


def test_registration_of_the_wrong_number_of_functions_is_an_error() -> None:
    inverse_registry[lax.sub_p] = jnp.add
    with pytest.raises(TypeError, match="inverse_registry needs 2 functions for sub"):
        inverse(lambda x: x - 1)(X)
    inverse_registry[lax.sub_p] = (jnp.add, 3)  # type: ignore[assignment]
    with pytest.raises(TypeError, match="one for each operand, got"):
        inverse(lambda x: x - 1)(X)


def test_registered_function_must_return_the_operand() -> None:
    inverse_registry[lax.exp_p] = jnp.sum
    with pytest.raises(TypeError, match=r"the rule for exp gave f32\[\] where f32\[4\] was"):
        inverse(jnp.exp)(X)


def test_sums_and_products_with_one_known_operand_are_undone() -> None:
    """Exercise 1 for the primitives that it names, `add_p` and `mul_p`."""
    affine = lambda x: 3.0 * (x + 2.0) * X
    np.testing.assert_allclose(inverse(affine)(affine(X)), X, rtol=1e-5)


@pytest.mark.parametrize("call", [jax.jit, jax.checkpoint, lambda g: jax.jit(jax.jit(g))])
def test_calls_are_undone(call: Any) -> None:
    """Exercise 2: `xla_call`, which is `jit` today."""
    np.testing.assert_allclose(inverse(call(f))(f(X)), X, rtol=1e-5)


def eval_jaxpr(jaxpr: Any, *args: Any) -> list[Any]:
    """The tutorial's first interpreter, with `Environment` and calls."""
    values: Environment[Any] = Environment()
    read = lambda atom: atom.val if hasattr(atom, "val") else values.read(atom)
    for var, value in zip(
        (*jaxpr.jaxpr.invars, *jaxpr.jaxpr.constvars), (*args, *jaxpr.consts), strict=True
    ):
        values.write(var, value)
    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive.name in ("jit", "pjit"):
            results = eval_jaxpr(equation.params["jaxpr"], *operands)
        else:
            results = equation.primitive.bind(*operands, **equation.params)
            results = results if equation.primitive.multiple_results else [results]
        for var, value in zip(equation.outvars, results, strict=True):
            values.write(var, value)
    return [read(atom) for atom in jaxpr.jaxpr.outvars]


def test_environment_serves_the_tutorials_evaluator() -> None:
    (result,) = eval_jaxpr(jax.make_jaxpr(jax.jit(lambda x: f(x) + X))(X), X)
    np.testing.assert_allclose(result, f(X) + X, rtol=1e-6)
