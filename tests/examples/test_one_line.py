"""Calls are read where statements share a line, and from loops on one line."""

import pytest

from jaxsight.examples.module_calls import calls_in
from jaxsight.source.module import Module

HEAD = (
    "import jax; import jax.numpy as jnp\n\ndef step(w, x):\n    return w - jnp.dot(w, x) * x\n\n"
)


def test_a_module_that_is_imported_twice_is_the_same() -> None:
    text = HEAD + "x = jnp.ones(3)\ny = step(x, x)\nimport jax.numpy as jnp\nx = jnp.ones(4)\n"
    ((_, sets),) = calls_in(Module.parse(text)).items()
    assert sets[0].text == "w = jnp.ones(3)\nx = jnp.ones(3)"


@pytest.mark.parametrize(
    ("calls", "inputs"),
    [
        ("w = jnp.zeros(3); x = jnp.ones(3)\nw = step(w, x)", "w = jnp.zeros(3)\nx = x"),
        ("w = jnp.zeros(3); x = jnp.ones(3)\nfor i in range(9): w = step(w, x)", None),
        ("w, x = jnp.zeros(3), jnp.ones(3); w = step(w, x)", None),
        ("n = 3; w = jnp.zeros(n); n = 4; x = jnp.ones(3)\nwhile True: w = step(w, x)", None),
        ("w = x = jnp.zeros(3); f = jax.jit(step); y = f(w, x)", None),
        ("w = jnp.zeros(3); x = jnp.ones(3); w = step(w, x); w = step(w, x)", None),
    ],
)
def test_statements_that_share_a_line(calls: str, inputs: str | None) -> None:
    found = calls_in(Module.parse(HEAD + calls + "\n"))
    ((_, sets),) = found.items()
    assert "w = " in sets[0].text
    if inputs is not None:
        assert sets[0].text == inputs


@pytest.mark.parametrize(
    "call",
    [
        "ys = [step(w, x) for w in (x, x)]",
        "step.jit = jax.jit(step)\nys = {n: step.jit.lower(x, x) for n in range(3)}",
        "step.jit = jax.jit(step)\nshow(step.jit, x, x, width=3)",
    ],
)
def test_first_turns_of_comprehensions_and_attributes_of_functions(call: str) -> None:
    ((_, sets),) = calls_in(Module.parse(f"{HEAD}x = jnp.ones(3)\n{call}\n")).items()
    assert sets[0].text.endswith("x = x")
