"""Names of raw PRNG keys, read off the functions of `jax.random` that make or take them."""

from __future__ import annotations

import ast

import pytest

from jaxsight.features.hover.random_keys import key_names

ORIGINS = {"jax": "jax", "jr": "jax.random", "split": "jax.random.split", "np": "numpy"}


def full_name(name: str) -> str:
    root, dot, attributes = name.partition(".")
    return f"{ORIGINS[root]}{dot}{attributes}" if root in ORIGINS else ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("key = jax.random.PRNGKey(seed)", {"key"}),
        ("key, *others = split(self.rng, 3)", {"key", "others", "self.rng"}),
        ("self.key = jr.fold_in(k, step)", {"self.key", "k"}),
        ("x = jr.normal(keys[0], (3,))", {"keys"}),
        ("x = jr.normal(key=k, shape=(3,))", {"k"}),
        ("bits = jr.bits(jr.PRNGKey(0), (2,))", set()),
        ("key = jr.key(seed)", set()),
        ("rng = np.random.default_rng(seed); x = np.random.normal(mean)", set()),
        ("key = table[2]", set()),
    ],
)
def test_names_that_functions_of_jax_random_make_or_take(text: str, names: set[str]) -> None:
    assert key_names(ast.parse(text), full_name) == names
