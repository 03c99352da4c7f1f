"""Programs without their functions: jaxprs and traced functions are written as they are."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from jaxsight import sourcerize
from jaxsight_source.written import Source
from tests.jaxsight_source.harnesses import from_jaxpr, load_harnesses, sample
from tests.searches import part

W = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3)), jnp.float32)
LAYER = {"b": jnp.ones(2), "w": W}


def layer(params: Any, x: Any) -> Any:
    return {"out": jnp.tanh(params["w"] @ x + params["b"]), "x": x}


def body(source: Source) -> str:
    """Return the lines of the function, without imports and constants."""
    return source[source.index("\n\n\n") :].strip()


def test_jaxpr_has_a_parameter_for_each_input():
    source = sourcerize(jax.make_jaxpr(layer)(LAYER, jnp.ones(3)), style="pretty")
    assert body(source) == (
        "def layer(params_b, params_w, x):\n    return jnp.tanh(params_w @ x + params_b), x"
    )
    assert source.proofs == ("jaxpr", "eagerly", "under jit", "under grad")


def test_name_of_a_jaxpr_can_be_chosen():
    source = sourcerize(jax.make_jaxpr(lambda *args: args[0] + args[1])(1, 2), name="add")
    assert body(source).startswith("def add(args_0, args_1):")


def test_constants_of_a_jaxpr_are_those_of_the_text():
    weights = np.random.default_rng(0).normal(size=300).astype(np.float32)
    source = sourcerize(jax.make_jaxpr(lambda x: x * weights)(1.0), constants="argument")
    (array,) = source.passed.values()
    np.testing.assert_array_equal(np.asarray(array), weights)


def test_jaxpr_without_its_constants_is_refused():
    jaxpr = jax.make_jaxpr(lambda x: W @ x)(jnp.ones(3))
    if jaxpr.jaxpr is jaxpr:  # since JAX 0.11 a jaxpr has them
        assert "def f(x):" in sourcerize(jaxpr.jaxpr, name="f")
        return
    with pytest.raises(TypeError, match="1 constant without values; pass a ClosedJaxpr"):
        sourcerize(jaxpr.jaxpr)


def test_jaxpr_of_a_jitted_function_is_one_jitted_function():
    jitted = jax.jit(lambda x, p: (x + p["a"], p["a"]), donate_argnums=1)
    source = sourcerize(jax.make_jaxpr(jitted)(1.0, {"a": 2.0}), style="pretty", name="f")
    assert body(source) == (
        '@jax.jit(donate_argnames="p_a")\ndef f(x, p_a):\n    return x + p_a, p_a'
    )


def test_traced_function_keeps_parameters_and_pytrees():
    source = sourcerize(jax.jit(layer).trace(LAYER, jnp.ones(3)), style="pretty")
    assert body(source) == (
        'def layer(params, x):\n    return {"out": jnp.tanh(params["w"] @ x + params["b"]), "x": x}'
    )
    assert "under grad" in source.proofs


def test_traced_function_keeps_kinds_of_parameters():
    @functools.partial(jax.jit, static_argnums=1, static_argnames="power")
    def function(x: Any, times: int, *more: Any, key: Any, power: int) -> Any:
        return times * x**power + more[0] + more[1] + key

    traced = function.trace(jnp.ones(3), 2, 1.0, jnp.ones(3), power=3, key=0.5)
    source = sourcerize(traced, style="pretty")
    assert "def function(x, *more, key):" in source
    assert "under grad" in source.proofs


def test_empty_argument_keeps_its_place():
    traced = jax.jit(lambda x, nothing, y: x + y).trace(1.0, None, 2.0)
    assert "def f(x, arg1, y):" in sourcerize(traced, name="f")


def test_effects_are_kept_and_callbacks_passed():
    def function(x: Any) -> Any:
        jax.debug.print("x = {}", x, ordered=True)
        return io_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), x, ordered=True)

    source = sourcerize(jax.make_jaxpr(function)(jnp.ones(3)))
    assert 'jax.debug.print("x = {}", x, ordered=True)' in source
    assert source.passed == {"sin": np.sin}
    assert source.proofs == ("jaxpr",)


def test_typed_keys_and_weak_types_are_run():
    jaxpr = jax.make_jaxpr(lambda key, x: jax.random.normal(key) + x)(jax.random.key(0), 1.0)
    assert "eagerly" in sourcerize(jaxpr).proofs
    assert "eagerly" in sourcerize(jax.make_jaxpr(lambda a, b: a * b)(1, 2)).proofs


def test_running_deletes_no_donated_array():
    x = jnp.ones(3)
    source = sourcerize(jax.jit(lambda x: x + 1, donate_argnums=0))(x)
    assert "eagerly" in source.proofs
    assert not x.is_deleted()


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.filterwarnings("ignore")
def test_jaxprs_of_a_sample_of_harnesses():
    held = sample(load_harnesses(), 100)
    assert len(held) > 100
    outcomes = [from_jaxpr(harness) for harness in part(held)]
    assert not [each for each in outcomes if each.stage not in ("ok", "unrunnable")]


def test_parameters_of_a_lowered_function_have_their_names():
    def dense(params, *xs):
        return params[0] @ xs[0] + params[1]["b"]

    lowered = jax.jit(dense).lower([W, {"b": jnp.ones(2)}], jnp.ones(3), jnp.ones(3))
    assert "def dense(params, *xs):" in sourcerize(lowered, style="pretty")
