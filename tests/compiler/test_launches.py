"""The launches that are counted are those that a profile of the run on this CPU shows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxsight.compiler.hlo import read

X = jnp.linspace(0.0, 1.0, 131072 * 2).reshape(131072, 2)

CONTAINERS = ("while", "call", "conditional")
"""Events of what launches others."""


def summed(x: jax.Array) -> jax.Array:
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + jnp.sum(k * x, axis=1, keepdims=True)


def transformed(x: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 4, lambda i, v: jnp.fft.fft(v).real + i, x[:4096, 0])


def scanned(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(c: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sort(c + v), c.sum()

    return jax.lax.scan(step, x[:2048, 0], jnp.arange(7.0))


def nested(x: jax.Array) -> jax.Array:
    def outer(i: Any, v: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda j, u: jnp.fft.fft(u).real, jnp.sort(v))

    return jax.lax.fori_loop(0, 5, outer, x[:4096, 0])


def sorted_product(x: jax.Array) -> jax.Array:
    a = x[:4096].reshape(64, 128)
    return jnp.sort(a) @ a.T + jnp.sin(a.sum())


def solved(x: jax.Array) -> jax.Array:
    a = x[:4096].reshape(64, 128)[:, :64] + 100 * jnp.eye(64)
    return jnp.linalg.cholesky(a @ a.T)


PROGRAMS = [summed, transformed, scanned, nested, sorted_product, solved]


def profiled(compiled: Any, x: jax.Array, folder: Path) -> Counter[str]:
    """How often each instruction was run, in one run."""
    jax.block_until_ready(compiled(x))
    with jax.profiler.trace(str(folder), create_perfetto_trace=True):
        jax.block_until_ready(compiled(x))
    (file,) = folder.glob("**/perfetto_trace.json.gz")
    with gzip.open(file) as opened:
        events = json.load(opened)["traceEvents"]
    told = [each["args"] for each in events if "hlo_op" in each.get("args", {})]
    last = max(int(each["run_id"]) for each in told)
    return Counter(each["hlo_op"] for each in told if int(each["run_id"]) == last)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_launches_are_those_of_a_profile(
    program: Callable[[jax.Array], Any], tmp_path: Path
) -> None:
    compiled = jax.jit(program).lower(X).compile()
    graph = read(compiled.as_text(), conditions=False)
    counted = Counter({each.name: each.launches for each in graph.kernels if each.launches})
    found = profiled(compiled, X, tmp_path)
    for name in list(found):
        if name.split(".")[0] in CONTAINERS and name not in counted:
            del found[name]
        elif name.startswith("sort") and found[name] == 2 * counted[name]:
            found[name] = counted[name]  # It copied its operand first, under its own name.
    assert found == counted
    assert graph.launch_count == found.total()
