"""Where arrays go that a function holds: into the text, into a file beside it, into arguments."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsight
from jaxsight_source.errors import TooLarge
from jaxsight_source.written import Written
from tests.jaxsight_source.gate import check_format

X = jnp.asarray(np.linspace(-1, 1, 64, dtype=np.float32))

RoundTrip = Callable[..., Written]


def noise(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=shape) * 3
    return jnp.asarray(values.astype(np.float32)).astype(dtype)


LARGE = noise(640, 512)


def dense(x: Any) -> Any:
    return x @ LARGE[:64] + LARGE[-1]


def test_arrays_over_a_mebibyte_are_refused_with_the_choices() -> None:
    with pytest.raises(TooLarge, match=r'1,310,720 bytes.*constants="npz".*constants="argument"'):
        jaxsight.sourcerize(dense)(X)


def test_arrays_that_are_over_a_mebibyte_together_are_refused() -> None:
    parts = [noise(64, 512, seed=seed) for seed in range(9)]
    with pytest.raises(TooLarge, match="constants of 1,179,648 bytes"):
        jaxsight.sourcerize(lambda x: sum(x @ part for part in parts))(X)


@pytest.mark.parametrize("constants", ["npz", "argument"])
@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_large_arrays_make_no_text(round_trip: RoundTrip, constants: str, style: str) -> None:
    written = round_trip(dense, X, constants=constants, style=style)
    assert len(written.text) < 1000
    check_format(written.text)


def test_saved_module_reads_its_arrays_from_beside_it(tmp_path: Path) -> None:
    source = jaxsight.sourcerize(dense, constants="npz")(X)
    source.save(tmp_path / "layer.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layer.npz", "layer.py"]
    assert (tmp_path / "layer.py").read_text() == source
    made = runpy.run_path(str(tmp_path / "layer.py"))["dense"]
    assert np.array_equal(made(X), dense(X))


def test_module_that_holds_all_of_its_arrays_is_saved_alone(tmp_path: Path) -> None:
    jaxsight.sourcerize(lambda x: x + 1, constants="npz", name="f")(X).save(tmp_path / "f.py")
    assert [path.name for path in tmp_path.iterdir()] == ["f.py"]


def test_arrays_as_arguments_are_given_with_the_text(round_trip: RoundTrip) -> None:
    source = jaxsight.sourcerize(jax.jit(dense), constants="argument")(X)
    (name,) = source.passed
    assert f"def dense(x, *, {name}):" in source
    assert f"{name}: is a constant array of the original, float32[640, 512]." in source
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = namespace["dense"]
    assert np.array_equal(made(X, **source.passed), jax.jit(dense)(X))


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float8_e4m3fn", "int4", "bool", "complex64", "uint16", "int32"]
)
@pytest.mark.parametrize("constants", ["inline", "npz", "argument"])
def test_every_type_keeps_its_bits(round_trip: RoundTrip, dtype: str, constants: str) -> None:
    table = noise(12, 11, dtype=jnp.dtype(dtype))
    round_trip(lambda i: table[i], 3, constants=constants)


@pytest.mark.parametrize("constants", ["inline", "npz", "argument"])
def test_arrays_of_keys(round_trip: RoundTrip, constants: str) -> None:
    keys = jax.random.split(jax.random.key(3), 100)
    round_trip(lambda i: jax.random.uniform(keys[i]), 3, constants=constants)


def test_array_of_a_weak_type_keeps_it(round_trip: Callable[..., Written]) -> None:
    weak = jax.lax.sin(jax.lax.cumsum(jax.lax.broadcast(2.0, (100,))))
    assert weak.weak_type
    for constants in ("inline", "npz"):
        written = round_trip(
            lambda x: (weak + x, jax.lax.sin(weak)), np.ones(100, np.float16), constants=constants
        )
        assert "weak_type=True" in written.text


def test_scalar_arrays_that_are_converted_are_arrays(round_trip: RoundTrip) -> None:
    """JAX folds conversions of numbers away, and keeps those of arrays."""
    weak, half = jnp.asarray(0.5), jnp.float16(0.25)

    def leaky(x: Any) -> Any:
        scaled = jnp.where(x > 0, weak, x) * lax.convert_element_type(half, jnp.float32)
        return scaled + lax.convert_element_type(weak, jnp.float32)

    for style in ("lax", "pretty"):
        text = round_trip(leaky, np.ones(3, np.float32), style=style).text
        assert "= jnp.asarray(np.float16(0.25))" in text
        check_format(text)
