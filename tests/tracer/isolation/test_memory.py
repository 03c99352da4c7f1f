"""A session of thousands of edits must not make the tracer grow."""

import sys
from pathlib import Path

import pytest

from tests.tracer.isolation.driver import Driver

TEXT = """
import jax
import jax.numpy as jnp
from typing import NamedTuple

WEIGHTS = jnp.ones((512, 512))  # a megabyte

class Layer(NamedTuple):
    weight: jax.Array
    bias: float = {n}.0

@jax.jit
def helper(layer, x):
    return jnp.tanh(layer.weight[:4, :4] @ x + layer.bias)

def f(x):
    def body(carry, _):
        return helper(Layer(WEIGHTS * {n}.0), carry), None
    out, _ = jax.lax.scan(body, x, None, length=3)
    return jax.grad(lambda y: jnp.sum(helper(Layer(WEIGHTS), y)))(out)
"""


def resident(pid: int) -> float:
    """MiB in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat_over_a_thousand_edits(fresh: Driver) -> None:
    sizes = []
    for step in range(1000):
        answer = fresh.trace(TEXT.replace("{n}", str(step)))
        assert f"{step}.0" in answer.jaxpr
        if step % 100 == 99:
            sizes.append(resident(fresh.process.pid))
    assert sizes[-1] < 1.03 * sizes[2], sizes


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_values_of_edited_statements_are_let_go(fresh: Driver) -> None:
    text = "import numpy\nTABLE = numpy.full(1 << 23, {n}.0)\ndef f(x):\n    return x * TABLE[0]\n"
    for step in range(40):  # 64 MiB each
        fresh.trace(text.replace("{n}", str(step)))
    assert resident(fresh.process.pid) < 1024
