"""Modules over meshes run alone, on simulated devices, and compute what the original computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from tests.corpora.jaxsight_source.programs.registry import called
from tests.jaxsight_source import gate

ROOT = Path(__file__).parents[2]
NOTE = "# needs 8 devices: XLA_FLAGS=--xla_force_host_platform_device_count=8 simulates them"

WRITE = """
import sys
from pathlib import Path

import jax
import numpy as np

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from tests.corpora.jaxsight_source.programs.registry import all_programs

folder = Path(sys.argv[1])
for program in all_programs():
    if program.name in sys.argv[2:]:
        call = program.make()
        written = write(call.function, call.args, call.kwargs, SourceOptions(name=program.name, run=False))
        (folder / f"{program.name}.py").write_text(written.text)
        results = jax.tree.leaves(call.function(*call.args))
        arrays = {"result": results, "argument": jax.tree.leaves(call.args)}
        named = {f"{kind}{at}": x for kind in arrays for at, x in enumerate(arrays[kind])}
        np.savez(folder / f"{program.name}.npz", **named)
"""

RUN = """
import importlib
import sys

import jax
import numpy as np

sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    kept = np.load(f"{sys.argv[1]}/{name}.npz")
    args = [kept[key] for key in kept if key.startswith("argument")]
    results = jax.tree.leaves(getattr(importlib.import_module(name), name)(*args))
    for at, result in enumerate(results):
        np.testing.assert_allclose(result, kept[f"result{at}"], rtol=1e-5, atol=1e-6)
    assert len(results) == sum(key.startswith("result") for key in kept)
assert "jaxsight" not in sys.modules
print(len(jax.devices()), "devices")
"""


def python(code: str, *arguments: str, **settings: str) -> str:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **settings}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_run_alone_on_simulated_devices(tmp_path):
    names = ("tensor_parallel_layer", "pipeline_of_stages", "mixture_of_experts")
    flags = NOTE.split(" ")[4]
    variable, _, value = flags.partition("=")
    python(WRITE, str(tmp_path), *names, **{variable: value})
    for name in names:
        text = (tmp_path / f"{name}.py").read_text()
        assert NOTE in text.splitlines()
        assert text.count("jax.make_mesh(") == 1
    shown = python(RUN, str(tmp_path), *names, **{variable: value, "PYTHONPATH": ""})
    assert shown == "8 devices\n"


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_a_mesh_of_one_device_needs_no_note(style):
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.NamedSharding(mesh, jax.P("data"))

    def run(x):
        y = jax.lax.with_sharding_constraint(jnp.sin(x), rows)
        return jax.lax.with_sharding_constraint(y + 1, rows)

    text = write(run, (jnp.ones(3),), {}, SourceOptions(style, "run", run=False)).text
    assert "# needs" not in text
    assert text.count("jax.make_mesh(") == 1


def test_conversions_of_a_gradient_are_written_without_their_sharding():
    def run(x):
        return jnp.sum(x.astype(jnp.bfloat16).astype(jnp.float32) ** 2)

    passed = gate.check(called(jax.grad(run), jnp.ones(3)))
    assert "jax.typeof" not in passed.text
    assert passed.bound == 0


def test_the_exchange_of_a_whole_axis_is_not_bound():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def run(x):
        def exchange(y):
            there = jax.lax.all_to_all(y, "data", 0, 1)
            return jax.lax.all_to_all(there, "data", 1, 0)

        return jax.shard_map(exchange, mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P("data"))(
            x
        )

    passed = gate.check(called(run, jnp.ones((1, 2, 3))))
    assert passed.bound == 0
    assert passed.text.count("lax.all_to_all(") == 2
