"""The examples of interpreters: what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "source" / "interpreters.md").read_text(encoding="utf-8")


def example(name: str) -> ModuleType:
    path = REPOSITORY / "examples" / "interpreters" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def smoothed(x: Any, weights: Any) -> Any:
    def step(carry: Any, w: Any) -> Any:
        carry = jnp.sin(carry) * w
        return carry, carry + x

    return lax.scan(step, x, weights)


LISTING = """\
subroutine smoothed(v1, v2)
  v3 = v1
  do k1 = 1, 3
    v7 = sin(v3)
    v8 = mul(v7, v2(k1))
    v9 = add(v8, v1)
    v3, v10(k1) = v8, v9
  end do
  return v3, v10"""


def test_listing_has_loops_with_their_carries() -> None:
    text = example("listing").fortran(smoothed, jnp.float32(1.0), jnp.ones(3))
    assert text == LISTING
    assert LISTING in PAGE


def test_operations_are_counted_as_often_as_loops_run() -> None:
    def layers(x: Any, weights: Any) -> Any:
        layer = lambda x, w: (jax.nn.sigmoid(x @ w), None)
        return lax.scan(layer, x, weights)[0]

    counts = example("operations").operations(layers, jnp.ones((2, 4)), jnp.ones((3, 4, 4)))
    assert counts == {"dot_general": 3 * 2 * 2 * 4 * 4, "logistic": 3 * 2 * 4}


def test_intervals_bound_results_and_warn_of_domains() -> None:
    domain, alarms = example("intervals").intervals()

    def f(x: Any) -> Any:
        y = lax.fori_loop(0, 3, lambda _, c: c * 0.5 - 1.0, x)
        return jnp.log(y * y), jnp.sqrt(y), x**2

    ends = jnp.float32(-2.0), jnp.float32(1.0)
    bounds = domain.run(jax.make_jaxpr(f)(0.0), [ends])
    assert [float(end) for end in bounds[2]] == [0.0, 4.0]
    np.testing.assert_allclose(bounds[0], [np.log(1.625**2), np.log(4.0)], rtol=1e-5)
    assert alarms == ["sqrt of a number down to -2"]
