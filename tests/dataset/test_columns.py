"""What rows have of a program at its stages, and of targets that are not here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jaxsight.dataset.program import Array, Program
from jaxsight.dataset.rows.check import check
from jaxsight.dataset.rows.describe import describe
from jaxsight.dataset.rows.targets import TargetCompilers

TEXT = """
import jax.numpy as jnp


def f(x):
    return jnp.tanh(jnp.sin(x) @ x.T), x.sum(axis=0), x > 1
"""
X = Array("float32", (8, 3))
OPERATION = re.compile(r"^ +(?:ROOT )?\S+ = (?:\(.*?\)|\S+) ([\w-]+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def row() -> dict[str, Any]:
    program = Program(0, TEXT, "f", {"x": X}, "math", "sine", is_differentiable=True)
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
    program = Program(0, KERNEL, "f", {"x": Array("float32", (32, 32))}, "pallas", "tanh")
    with TargetCompilers() as compilers:
        row = describe(program, ["cpu", "cuda:h100"], compilers.labels)
    assert "pallas_call" in row["primitives"]
    cpu, h100 = row["targets"]
    assert "triton" not in {kernel["kind"] for kernel in cpu["kernels"]}
    [kernel] = h100["kernels"]
    assert kernel["kind"] in ("triton", "library")  # JAX 0.10 calls Mosaic
    assert kernel["equations"] == ["0"]
    checks = check(program, row["canonical_digest"], row["stablehlo"], row["_results"])
    assert set(checks.values()) == {"passed"}
