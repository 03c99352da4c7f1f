"""Programs for several devices are no rows: the figures of a row are those of one device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SERVER = Path(__file__).parents[2] / "server"

DESCRIBE = '''
import jax

jax.config.update("jax_num_cpu_devices", 4)

from jaxsight_dataset.program import Array, RowProgram
from jaxsight_dataset.rows.describe import Rejected, describe

TEXT = """
import jax
import jax.numpy as jnp

mesh = jax.make_mesh((COUNT,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


def f(x):
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    return jnp.sin(jax.lax.with_sharding_constraint(x, split))
"""

for count in ("4", "1"):
    text = TEXT.replace("COUNT", count)
    program = RowProgram(0, text, "f", {"x": Array("float32", (8,))}, "math", "sine")
    try:
        (label,) = describe(program, ["cpu"], lambda direction, targets: [])["targets"]
        print(label["kernel_count"] > 0)
    except Rejected as rejected:
        print(rejected.cause, "|", rejected)
'''


def test_a_program_that_spans_devices_is_rejected() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        env={**os.environ, "PYTHONPATH": str(SERVER), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "spans several devices | it spans 4 devices\nTrue\n", done.stderr
