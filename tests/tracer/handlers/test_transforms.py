"""Transformations of a function as functions of their own: what they are of, and that they are
JAX's.
"""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.transforms import transformed
from jaxsight.tracer.calls.user_function import TraceableCall, UserFunction
from jaxsight.tracer.failures import UserError


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    make: Any = jax.ShapeDtypeStruct
    return make(shape, dtype)


def call(transform: str, function: Any, *args: Any, **kwargs: Any) -> TraceableCall:
    found = UserFunction(function, hasattr(function, "trace"), None)
    return transformed(found, Inputs(args, kwargs, {}), "Model.loss", transform)


def loss(step: Any, params: Any, x: Any, *, mode: str = "sum") -> Any:
    """A scalar; the parameters are the first that it can be differentiated by."""
    error = params["w"] * x + step
    return jnp.sum(error) if mode == "sum" else jnp.mean(error)


STEP, PARAMS, X = array(dtype=jnp.int32), {"w": array(3)}, array(3)


def jaxpr(made: TraceableCall) -> str:
    """As text, with the arguments that are no arrays closed over."""
    return str(jax.make_jaxpr(lambda *args: made.function(*args, **made.kwargs))(*made.args))


def test_function_itself_is_not_touched() -> None:
    made = call("", loss, STEP, PARAMS, X, mode="mean")
    assert (made.function, made.args, made.kwargs) == (loss, (STEP, PARAMS, X), {"mode": "mean"})
    assert (made.name, made.about) == ("loss", "Model.loss")


@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_gradient_is_by_the_first_argument_that_is_all_floating_point(transform: str) -> None:
    made = call(transform, loss, STEP, PARAMS, X, mode="mean")
    jaxs: Any = getattr(jax, transform)
    expected = jax.make_jaxpr(lambda *args: jaxs(loss, argnums=1)(*args, mode="mean"))
    assert jaxpr(made) == str(expected(STEP, PARAMS, X))
    assert made.about == f"{transform}(Model.loss) with respect to params"
    assert made.name == f"loss_{transform}"


def test_gradient_by_nothing_is_refused() -> None:
    with pytest.raises(UserError) as error:
        call("grad", loss, STEP, {"w": array(3, dtype=jnp.int32)}, 2)
    assert error.value.failure.stage == "sourcerize"
    assert "cannot differentiate" in error.value.failure.message


def test_vmap_maps_every_array_and_leaves_the_rest() -> None:
    made = call("vmap", loss, STEP, PARAMS, X, mode="mean")
    assert made.args == (array(8, dtype=jnp.int32), {"w": array(8, 3)}, array(8, 3))
    expected = jax.make_jaxpr(jax.vmap(lambda *args: loss(*args, mode="mean")))(*made.args)
    assert jaxpr(made) == str(expected)
    assert inspect.signature(made.function) == inspect.signature(loss)


def test_vmap_takes_keyword_arguments_that_are_arrays_or_none() -> None:
    def scaled(x: Any, *, by: Any = None, flag: bool) -> Any:
        return x * by if flag else x

    made = call("vmap", scaled, X, by=X, flag=True)
    result = jax.eval_shape(lambda x, by: made.function(x, by=by, flag=True), *[array(8, 3)] * 2)
    assert result.shape == (8, 3)


def test_jit_holds_still_what_is_no_array() -> None:
    made = call("jit", loss, STEP, PARAMS, X, mode="mean")
    (equation,) = jax.make_jaxpr(lambda *a: made.function(*a, mode="mean"))(*made.args).eqns
    assert equation.primitive.name in ("jit", "pjit")


def test_jit_of_a_jitted_function_is_that_function() -> None:
    jitted = jax.jit(loss)
    assert call("jit", jitted, STEP, PARAMS, X).function is jitted


def test_items_of_varied_arguments_are_named_by_their_place() -> None:
    def total(first: Any, *rest: Any) -> Any:
        return first * sum(map(jnp.sum, rest))

    made = call("grad", total, array(dtype=jnp.int32), X, X)
    assert made.about == "grad(Model.loss) with respect to rest[0]"
