"""Python numbers among the arguments: built in where the function needs their values."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsight


def loaded(source: str, name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def zeros(n, x):
    return jnp.zeros((n,)) + x


def repeated(x, k, axis=0):
    return jnp.concatenate([x] * k, axis)


def scaled(x, factor):
    return x * factor


def jnp_tiled(x, count, factor):
    return jnp.tile(x, count) * factor


@functools.partial(jax.jit, static_argnums=1)
def rows(x, count):
    return x.reshape(count, -1).sum(0)


def called(count, x):
    return rows(x, count)


def layers(sizes, x):
    return [jnp.full((a, b), x) for a, b in itertools.pairwise(sizes)]


def test_a_size_is_built_in() -> None:
    source = jaxsight.sourcerize(zeros)(4, jnp.ones(4))
    function = loaded(source, "zeros")
    np.testing.assert_array_equal(function(4, jnp.ones(4)), np.ones(4))
    with pytest.raises(ValueError, match="written for n = 4"):
        function(5, jnp.ones(5))


def test_a_number_of_repetitions_is_built_in() -> None:
    source = jaxsight.sourcerize(repeated)(jnp.ones((2, 2)), 3, axis=1)
    assert "written for k = 3" in source


def test_a_number_whose_value_is_not_needed_stays_an_argument() -> None:
    source = jaxsight.sourcerize(scaled)(jnp.ones(2), 3)
    assert "written for" not in source
    assert float(loaded(source, "scaled")(jnp.ones(2), 5)[0]) == 5.0


def test_integers_are_built_in_before_other_numbers() -> None:
    source = jaxsight.sourcerize(jnp_tiled, style="pretty")(jnp.ones(3), 2, 0.5)
    assert source.split("\n\n\n", 1)[1] == (
        "def jnp_tiled(x, count, factor):\n"
        "    if count != 2:\n"
        '        raise ValueError("written for count = 2")\n'
        "    factor = jnp.asarray(factor)\n"
        "    return jnp.tile(x, (2,)) * factor\n"
    )


def test_a_static_argument_of_a_jitted_function_is_built_in() -> None:
    function = loaded(jaxsight.sourcerize(called)(2, jnp.ones(4)), "called")
    np.testing.assert_array_equal(function(2, jnp.ones(4)), [2, 2])


def test_a_list_of_sizes_is_checked_at_once() -> None:
    source = jaxsight.sourcerize(layers)([3, 4, 2], jnp.ones(()))
    assert "if sizes != [3, 4, 2]:" in source
    with pytest.raises(ValueError, match=r"written for sizes = \[3, 4, 2\]"):
        loaded(source, "layers")([3, 4, 3], jnp.ones(()))


def body(source: str) -> str:
    return source[source.index("def ") :]


def test_several_values_are_checked_by_one_statement() -> None:
    def summed(x, n=3, mode="sum", *, causal=True):
        return x

    source = jaxsight.sourcerize(summed)(jnp.ones(()))
    assert body(source) == (
        'def summed(x, n=3, mode="sum", *, causal=True):\n'
        '    if n != 3 or mode != "sum" or causal is not True:\n'
        "        raise ValueError('written for n = 3, mode = \"sum\", causal = True')\n"
        "    return x\n"
    )
    for other in ({"n": 4}, {"mode": "mean"}, {"causal": 1}):
        with pytest.raises(ValueError, match="written for n = 3, mode ="):
            loaded(source, "summed")(jnp.ones(()), **other)


def test_a_container_of_other_values_is_checked_at_once() -> None:
    config = {"act": "relu", "layers": {"names": ["a", "b"], "bias": ("no", None)}}
    source = jaxsight.sourcerize(lambda x, config: x * 2, name="f")(
        1.0, {"w": 2.0, "static": config}
    )
    assert source.count("raise ValueError") == 1
    function = loaded(source, "f")
    function(1.0, {"w": 2.0, "static": config})
    with pytest.raises(ValueError, match="written for config"):
        function(1.0, {"w": 2.0, "static": config | {"act": "gelu"}})


def test_what_all_elements_of_a_list_have_is_checked_in_a_loop() -> None:
    blocks = [{"w": jnp.ones(()), "act": jax.nn.relu, "kind": "mlp"} for _ in range(30)]
    source = jaxsight.sourcerize(lambda blocks: blocks[0]["w"], name="f")(blocks)
    assert (
        "    for i in range(30):\n"
        '        if blocks[i]["act"] is not jax.nn.relu:\n'
        "            raise ValueError(f'written for blocks[{i}][\"act\"] = jax.nn.relu')\n"
        '        if blocks[i]["kind"] != "mlp":\n'
        '            raise ValueError(f\'written for blocks[{i}]["kind"] = "mlp"\')\n'
    ) in source
    function = loaded(source, "f")
    function(blocks)
    blocks[7] = blocks[7] | {"kind": "moe"}
    with pytest.raises(ValueError, match=r'written for blocks\[7\]\["kind"\] = "mlp"'):
        function(blocks)


def test_an_error_that_no_number_mends_is_the_first_one() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        jaxsight.sourcerize(lambda n, x: x + "a")(3, jnp.ones(3))


def test_the_package_lists_its_public_names() -> None:
    assert set(dir(jaxsight)) == set(jaxsight.__all__)
    assert {"sourcerize", "kernels", "expect", "inverse", "same_jaxpr"} <= set(dir(jaxsight))
    for name in dir(jaxsight):
        assert getattr(jaxsight, name) is not None
