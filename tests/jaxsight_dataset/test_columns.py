"""What rows have of a program at its stages, and of targets that are not here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec

from jaxsight_dataset import start
from jaxsight_dataset.program import Array, RowProgram
from jaxsight_dataset.rows import one_device
from jaxsight_dataset.rows.check import check
from jaxsight_dataset.rows.describe import describe
from jaxsight_dataset.rows.targets import TargetCompilers

SERVER = Path(__file__).parents[2] / "server"

TEXT = """
import jax.numpy as jnp


def f(x):
    return jnp.tanh(jnp.sin(x) @ x.T), x.sum(axis=0), x > 1
"""
X = Array("float32", (8, 3))
OPERATION = re.compile(r"^ +(?:ROOT )?\S+ = (?:\(.*?\)|\S+) ([\w-]+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def row() -> dict[str, Any]:
    program = RowProgram(0, TEXT, "f", {"x": X}, "math", "sine", is_differentiable=True)
    with TargetCompilers() as compilers:
        return describe(program, ["cpu", "cuda:h100"], compilers.labels)


def test_unoptimized_hlo_has_the_operations_of_the_program_one_by_one(row: dict[str, Any]) -> None:
    operations = OPERATION.findall(row["unoptimized_hlo"])
    assert {"sine", "dot", "tanh", "reduce", "compare"} <= set(operations)
    assert "fusion" not in operations
    assert "fusion" in OPERATION.findall(row["hlo"])


def test_the_derivative_has_unoptimized_hlo_too(row: dict[str, Any]) -> None:
    operations = OPERATION.findall(row["backward_unoptimized_hlo"])
    assert operations.count("dot") == 3
    assert {"sine", "cosine", "tanh"} <= set(operations)


def test_bytes_of_arguments_and_results_are_known_without_the_device(row: dict[str, Any]) -> None:
    cpu, h100 = row["targets"]
    assert h100["compiled"] == "ahead of time"
    for label in (cpu, h100):
        assert label["argument_bytes"] == 8 * 3 * 4
        assert label["output_bytes"] == 8 * 8 * 4 + 3 * 4 + 8 * 3 + 3 * 8  # and three pointers
    cpu, h100 = row["backward_targets"]
    for label in (cpu, h100):
        assert label["argument_bytes"] == 8 * 3 * 4 + 8 * 8 * 4 + 3 * 4
        assert label["output_bytes"] == 8 * 3 * 4


KERNEL = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, out_ref):
    out_ref[...] = jnp.tanh(x_ref[...])


def f(x):
    call = pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 32), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 32), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=jax.default_backend() == "cpu",
    )
    return call(x)
"""


def test_kernels_of_pallas_are_interpreted_on_the_cpu_and_compiled_for_gpus() -> None:
    program = RowProgram(0, KERNEL, "f", {"x": Array("float32", (32, 32))}, "pallas", "tanh")
    with TargetCompilers() as compilers:
        row = describe(program, ["cpu", "cuda:h100"], compilers.labels)
    assert "pallas_call" in row["primitives"]
    cpu, h100 = row["targets"]
    assert "triton" not in {kernel["kind"] for kernel in cpu["kernels"]}
    [kernel] = h100["kernels"]
    assert kernel["kind"] in ("triton", "library")  # JAX 0.10 calls Mosaic
    assert kernel["equations"] == ["0"]
    checks = check(program, row["canonical_digest"], row["stablehlo"], row["hlo"], row["_results"])
    assert set(checks.values()) == {"passed"}


DISTRIBUTED = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec

MESH = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))


def f(x, y):
    def local_step(part, whole):
        total = lax.psum(jnp.sum(part, axis=0), "data")
        return REDUCTION(part) + total * whole

    split = PartitionSpec("data")
    step = jax.shard_map(
        local_step,
        mesh=MESH,
        in_specs=(split, PartitionSpec()),
        out_specs=split,
        check_vma=False,
    )
    return step(x, y)
"""

DESCRIBE = f'''
import json
import jax
from jaxsight_dataset.program import Array, RowProgram
from jaxsight_dataset.rows.check import check
from jaxsight_dataset.rows.describe import describe
from jaxsight_dataset.rows.targets import TargetCompilers

text = """{DISTRIBUTED}""".replace("REDUCTION", "jnp.tanh")
arguments = {{"x": Array("float32", (8, 6)), "y": Array("float32", (6,))}}
program = RowProgram(0, text, "f", arguments, "distributed", "step", is_differentiable=True)
with TargetCompilers() as compilers:
    row = describe(program, ["cpu", "cuda:h100"], compilers.labels)
checks = check(program, row["canonical_digest"], row["stablehlo"], row["hlo"], row["_results"])
print(json.dumps([row["targets"], row["backward_targets"], row["validation"], checks]))
'''


def test_a_program_over_devices_has_the_figures_of_one_and_agrees_with_a_run_on_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        env={**os.environ, "PYTHONPATH": str(SERVER), **start.VARIABLES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    targets, backward, described, checks = json.loads(done.stdout)
    for labels in (targets, backward):
        assert [label["devices"] for label in labels] == [4, 4]
        assert [label["compiled"] for label in labels] == ["simulated", "ahead of time"]
        for label in labels:
            assert "collective" in {kernel["kind"] for kernel in label["kernels"]}
    assert [label["argument_bytes"] for label in targets] == [2 * 6 * 4 + 6 * 4] * 2
    assert described["gradient"] == "passed"
    assert checks == {
        "printed": "passed",
        "eager": "not compared: it spans several devices",
        "stablehlo": "passed",
        "one_device": "passed",
    }


@pytest.mark.parametrize(
    "axes", [("a", None), (None, "a"), ("a", "b"), (("a", "b"),), (("b", "a"),)]
)
def test_shards_on_one_device_are_those_of_a_mesh(axes: tuple[Any, ...]) -> None:
    spec = PartitionSpec(*axes)
    mesh = jax.sharding.AbstractMesh((2, 3), ("a", "b"))
    values = np.arange(72.0, dtype=np.float32).reshape(12, 6)
    seen: list[Any] = []

    def function(x: Any) -> Any:
        def local(part: Any) -> Any:
            seen.append(part.shape)
            places = lax.axis_index("a") * 10 + lax.axis_index("b")
            return part * 100 + places

        step = jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        return step(x)

    whole = {name for part in axes for name in ((part,) if isinstance(part, str) else part or ())}
    if whole != {"a", "b"}:
        with pytest.raises(NotImplementedError, match="no argument is split"):
            one_device.run(function, (values,))
        return
    (result,) = one_device.run(function, (values,))
    shape, sizes = seen[0], {"a": 2, "b": 3}
    for a in range(2):
        for b in range(3):
            place = {"a": a, "b": b}
            index = []
            for at in range(2):
                part = axes[at] if at < len(axes) else None
                names = (part,) if isinstance(part, str) else part or ()
                number = 0
                for name in names:
                    number = number * sizes[name] + place[name]
                index.append(slice(number * shape[at], (number + 1) * shape[at]))
            expected = values[tuple(index)] * 100 + a * 10 + b
            assert np.array_equal(result[tuple(index)], expected)
