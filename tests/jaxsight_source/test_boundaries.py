"""What no text can hold: pytrees that go out, values that came in as they were."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxsight_source.api import write
from jaxsight_source.written import Written, load
from tests.jaxsight_source.gate import check_format

X = jnp.asarray(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))

RoundTrip = Callable[..., Written]


@jax.tree_util.register_pytree_node_class
class Opaque:
    """Holds arrays, and a function that no text can say."""

    def __init__(self, value: Any, how: Any) -> None:
        self.value = value
        self.how = how

    def tree_flatten(self) -> Any:
        return (self.value,), self.how

    @classmethod
    def tree_unflatten(cls, how: Any, children: Any) -> Opaque:
        return cls(children[0], how)


def how(x: Any) -> Any:
    return x


def test_structure_of_an_opaque_result_is_passed_in_and_explained(round_trip: RoundTrip) -> None:
    def f(x: Any) -> Any:
        return {"a": Opaque(x * 2, how), "b": [Opaque(x, how)]}, x.sum()

    written = round_trip(f, X, run=False)
    (given,) = written.placeholders
    assert "def f(x, *, structure):" in written.text
    assert "structure: is the `jax.tree.structure` of a result of type" in written.text
    made = load(written)(X)
    assert jax.tree.structure(made) == jax.tree.structure(f(X))
    assert given.value == jax.tree.structure(Opaque(0, how))


def test_opaque_result_like_an_argument_takes_over_its_structure(round_trip: RoundTrip) -> None:
    written = round_trip(lambda x: Opaque(x.value + 1, x.how), Opaque(X, how), run=False)
    assert not written.placeholders
    assert "jax.tree.unflatten(jax.tree.structure(x)" in written.text


def test_result_of_a_public_dataclass_is_built(round_trip: RoundTrip) -> None:
    def f(x: Any) -> Any:
        return eqx.nn.Linear(3, 2, use_bias=False, key=jax.random.key(0)), x

    written = write(f, (X,), {})
    made = load(written)(X)
    assert jax.tree.structure(made) == jax.tree.structure(f(X))


def test_states_of_optimisers_are_built_from_their_types(round_trip: RoundTrip) -> None:
    optimiser = optax.adamw(1e-3)
    written = round_trip(optimiser.init, {"w": X})
    assert "ScaleByAdamState(" in written.text
    assert not written.placeholders


def test_jitted_function_of_opaque_results_is_called_by_one_that_is_not(
    round_trip: RoundTrip,
) -> None:
    written = round_trip(jax.jit(lambda x: Opaque(x * 2, how)), X, run=False)
    assert written.placeholders
    assert "@jax.jit" in written.text


class Config:
    """Without an address in its `repr`."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __repr__(self) -> str:
        return f"Config(width={self.width})"


class Silent:
    """Says nothing of itself."""


@functools.partial(jax.jit, static_argnames=("mode", "flag", "none", "by", "size"))
def chosen(
    x: Any, mode: Any = None, flag: Any = True, none: Any = None, by: Any = None, size: Any = 1.0
) -> Any:
    return by(x) if by is not None else x * size


@pytest.mark.parametrize(
    ("name", "value", "other", "test"),
    [
        ("mode", "it's", "other", 'mode != "it\'s"'),
        ("flag", False, True, "flag is not False"),
        ("none", None, 1, "none is not None"),
        ("size", 2.5, 3.0, "size != 2.5"),
        ("mode", float("nan"), 1.0, "not np.isnan(mode)"),
        ("mode", (1, "a"), (1, "b"), 'mode != (1, "a")'),
        ("mode", frozenset({"b", "a"}), frozenset(), 'mode != frozenset(["a", "b"])'),
        ("by", jnp.sin, jnp.cos, "by is not jnp.sin"),
        ("mode", np.dtype("float32"), np.dtype("int8"), "mode != jnp.float32"),
        ("mode", Config(3), Config(4), 'repr(mode) != "Config(width=3)"'),
        ("mode", Silent(), 3, 'type(mode).__name__ != "Silent"'),
    ],
    ids=lambda part: None if callable(part) else type(part).__name__,
)
def test_values_that_are_built_in_are_checked(name: str, value: Any, other: Any, test: str) -> None:
    written = write(chosen, (X,), {name: value})
    assert test in written.text
    check_format(written.text)
    made = load(written)
    made(X, **{name: value})
    with pytest.raises(ValueError, match="written for"):
        made(X, **{name: other})


def test_value_that_no_text_can_compare_is_explained() -> None:
    text = write(chosen, (X,), {"by": how}).text
    assert f"by: is built in: the program is valid for {__name__}.how only." in " ".join(
        text.split()
    )


def test_function_among_the_leaves_of_an_argument_is_checked(round_trip: RoundTrip) -> None:
    def f(model: Any, x: Any) -> Any:
        return model["act"](x @ model["w"])

    written = round_trip(f, {"w": jnp.ones((3, 3)), "act": jax.nn.relu}, X, run=False)
    assert 'if model["act"] is not jax.nn.relu:' in written.text
