"""A NaN in a program that is mapped over a mesh leads to the line of the operation that makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import extract

PROGRAM = """\
import jax
import jax.numpy as jnp

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


def shard(x):
    total = jax.lax.psum(x, "i")
    less = jnp.log(total - 9.0 + jax.lax.axis_index("i"))
    return jnp.sin(less).sum() * 2 + x


@jax.jit
def loss(x):
    P = jax.P("i")
    return jax.shard_map(shard, mesh=mesh, in_specs=P, out_specs=P)(x * 2.0).sum()


print(jax.grad(loss)(jnp.ones(8)))
"""


@pytest.mark.slow
def test_a_nan_in_a_shard_is_traced_to_its_line(tmp_path: Path) -> None:
    done = extract(tmp_path, PROGRAM, "--check", "nan")
    assert done.code == 0, done.stderr
    assert done.stdout.endswith("repro.py: AssertionError: NaN in result[0]\n")
    assert "Captured from program.py:10." in done.repro
