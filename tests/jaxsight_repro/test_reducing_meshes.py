"""A reduction makes meshes smaller, and asks for as many devices as are left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import body
from tests.jaxsight_repro.test_reducing import reduced

RING = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)


def main(x, w):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def block(x, w):
        y = jax.lax.psum(jnp.tanh(x @ w), "model")
        return y * jnp.sqrt(1.0 - jax.lax.axis_index("data"))

    specs = (P("data", "model"), P("model", None))
    return jnp.cos(jax.shard_map(block, mesh=mesh, in_specs=specs, out_specs=P("data", None))(x, w))


def inputs():
    return jnp.ones((8, 4)), jnp.ones((4, 6))


if __name__ == "__main__":
    main(*inputs())
"""

STOPPED = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_debug_nans", True)


def main(x):
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))

    @jax.jit
    def step(x):
        shard = lambda x: jnp.log(x - jax.lax.psum(jnp.sum(x), "data"))
        return jax.shard_map(shard, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)

    return jnp.cos(step(x))


def inputs():
    return (jnp.ones(8),)


if __name__ == "__main__":
    main(*inputs())
"""
"""`jax_debug_nans` stops a call of a jitted function, whose operations then run one at a time."""

COLLECTIVE = """\
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def main(x, w):
    return jnp.tanh(x @ w).sum(axis=0)


def inputs():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x, w = jnp.ones((16, 8)), jnp.ones((8, 8))
    over = NamedSharding(mesh, P("data", "model"))
    return jax.device_put(x, over), jax.device_put(w, NamedSharding(mesh, P(None, "model")))


if __name__ == "__main__":
    main(*inputs())
"""

ALONE = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)


def main(x):
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)

    def block(x):
        x = jax.lax.all_gather(jnp.sin(x), "a", tiled=True)
        x = jax.lax.ppermute(x, "b", [(0, 1), (1, 0)])
        return jax.lax.psum_scatter(jnp.log(x - 2.0), "a", tiled=True)

    return jax.shard_map(block, mesh=mesh, in_specs=P(("a", "b")), out_specs=P(("a", "b")))(x)


def inputs():
    return (jnp.ones(8),)


if __name__ == "__main__":
    main(*inputs())
"""


@pytest.mark.slow
def test_an_axis_that_the_failure_does_not_need_is_dropped_and_the_other_gets_shorter(
    tmp_path: Path,
) -> None:
    event, text = reduced(tmp_path, RING, "--check", "nan")
    assert event["unit"] == "equations"
    assert 'jax.config.update("jax_num_cpu_devices", 3)' in text
    assert 'jax.make_mesh((3,), ("data",)' in text
    assert "model" not in body(text)


@pytest.mark.slow
def test_arguments_of_several_devices_are_constrained_and_the_flag_follows(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, COLLECTIVE, "--check", "hlo:cpu:all-reduce")
    assert event["unit"] == "equations"
    assert "--xla_force_host_platform_device_count=2 " in text
    assert "jax.make_mesh((2,), (" in text
    assert "lax.with_sharding_constraint(" in text


@pytest.mark.slow
def test_a_failure_of_one_device_loses_its_mesh(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, ALONE, "--check", "nan")
    assert event["unit"] == "equations"
    assert "mesh" not in body(text)
    assert "devices" not in body(text)


@pytest.mark.slow
def test_a_call_that_debug_nans_stops_is_reduced_to_one_device(tmp_path: Path) -> None:
    event, text = reduced(tmp_path, STOPPED)
    assert event["unit"] == "equations"
    assert event["failure"]["message"] == "Invalid value (nan) encountered in sharded computation."
    assert "make_mesh((1,)" in text
    assert "jax_num_cpu_devices" not in text
    assert "cos" not in text
