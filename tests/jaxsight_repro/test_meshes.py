"""Programs for several devices leave repros that make the same meshes and fail alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import body, extract, jaxsight

HEAD = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

"""

ARGUMENT = """\
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_debug_nans", True)
mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit, AxisType.Auto))
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("a", None)))


@jax.jit
def step(x):
    return jnp.log(x - 2.0)


step(x)
"""

PERMUTED = """\
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
devices = np.array(jax.devices())[[7, 5, 3, 1]].reshape(2, 2)
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(Mesh(devices, ("a", "b")), P(("a", "b"))))
jax.config.update("jax_debug_nans", True)
jax.jit(lambda x: jnp.log(x - 2.0))(x)
"""

SHARD_MAP = """\
jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))


def block(b):
    return b @ jnp.ones((3, 3))


@jax.jit
def step(x):
    return jax.shard_map(block, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x)


step(jnp.ones((8, 4)))
"""

CONTEXT = """\
jax.config.update("jax_num_cpu_devices", 4)
with jax.set_mesh(jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)):

    @jax.jit
    def step(x):
        return jax.lax.with_sharding_constraint(jnp.sin(x), P("a", "c"))

    step(jnp.ones((8, 4)))
"""

CONSTRAINT = """\
jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,))


@jax.jit
def step(x):
    return jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("i")))


step(jnp.ones((8, 4)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "error", "lines"),
    [
        (
            ARGUMENT,
            "FloatingPointError: invalid value (nan)",
            (
                'jax.config.update("jax_num_cpu_devices", 4)',
                'jax.make_mesh((2, 2), ("a", "b"), axis_types=(',
                "(jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto)",
                'NamedSharding(mesh, jax.P("a", None))',
            ),
        ),
        (
            PERMUTED,
            "FloatingPointError: invalid value (nan)",
            (
                'jax.config.update("jax_num_cpu_devices", 8)',
                "[jax.devices()[7], jax.devices()[5], jax.devices()[3], jax.devices()[1]]",
                'jax.P(("a", "b"))',
            ),
        ),
        (SHARD_MAP, "TypeError: dot_general requires", ("jax.shard_map(",)),
        (
            CONTEXT,
            "ValueError: Resource axis: c of",
            (
                'jax.set_mesh(jax.make_mesh((2, 2), ("a", "b"), axis_types=(',
                "(jax.sharding.AxisType.Auto,) * 2",
                'lax.with_sharding_constraint(jnp.sin(x), jax.P("a", "c"))',
            ),
        ),
        (CONSTRAINT, "ValueError: The spec of NamedSharding", ("AxisType.Explicit",)),
    ],
    ids=["argument", "permuted", "shard_map", "context", "constraint"],
)
def test_a_repro_makes_its_devices_and_meshes(
    tmp_path: Path, program: str, error: str, lines: tuple[str, ...]
) -> None:
    done = extract(tmp_path, HEAD + program)
    assert done.code == 0, done.stdout + done.stderr
    for line in lines:
        assert line in done.repro
    assert error in _alone(done.path)


def _alone(repro: Path) -> str:
    """Return the errors of a repro in a process with one device."""
    variables = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    alone = subprocess.run(
        [sys.executable, str(repro)], env=variables, capture_output=True, text=True, check=False
    )
    assert alone.returncode == 1
    return alone.stderr


FUNCTIONS = '''
def own(x):
    """Use a mesh of the file.

    Example inputs:
        x: f32[8, 4]
    """
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("a", "b")))


def declared(x):
    """Use a declared mesh.

    Example inputs:
        mesh: data=2, model=4
        x: f32[8@data, 4]
    """
    return x @ jnp.ones((3, 3))
'''


@pytest.mark.slow
@pytest.mark.parametrize(("function", "count"), [("own", 4), ("declared", 8)])
def test_a_function_has_as_many_devices_as_it_asks_for(
    tmp_path: Path, function: str, count: int
) -> None:
    (tmp_path / "model.py").write_text(HEAD + FUNCTIONS)
    out = tmp_path / "repro.py"
    options = ("--python", sys.executable, "-o", str(out), "--allow", "run")
    done = jaxsight(tmp_path, "repro", "function", *options, f"model.py:{function}")
    assert done.code == 0, done.stdout + done.stderr
    assert f'jax.config.update("jax_num_cpu_devices", {count})' in body(out.read_text())
    assert "Error: " in _alone(out)
