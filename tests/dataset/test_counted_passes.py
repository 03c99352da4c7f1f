"""Programs are compiled, and counted after each pass of XLA."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight.dataset.making.worker_process import WorkerProcess
from jaxsight.dataset.passes.counting import count
from jaxsight.dataset.rows.describe import Rejected
from jaxsight.dataset.schema import PASSES
from jaxsight.dataset.spec import Spec

OF_ROW = {"schema_version", "number", "split", "canonical_digest", "direction"}


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess(sys.executable) as process:
        yield process


def passes(f: Any, *shapes: tuple[int, ...]) -> list[dict[str, Any]]:
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return list(count(jax.jit(f).lower(*arguments).as_text())["passes"])


def test_there_is_a_record_of_the_table() -> None:
    found = count(jax.jit(jnp.sin).lower(np.float32(1)).as_text())
    assert {*found, *OF_ROW} == {column.name for column in PASSES}


def test_the_first_state_is_that_before_all_passes() -> None:
    first, *later = passes(lambda x: jnp.sin(x) + jnp.cos(x) * 2, (8,))
    assert (first["position"], first["pipeline"], first["name"]) == (0, "", "")
    # The broadcast, sin, cos, multiply and add; the constant and the parameter are no operations.
    assert (first["operation_count"], first["instruction_count"]) == (5, 7)
    assert all(each["pipeline"] and each["name"] for each in later)
    last = later[-1]
    assert (last["operation_count"], last["fusion_count"]) == (1, 1)


def test_the_pass_that_fuses_is_named() -> None:
    states = passes(lambda x: jnp.sin(x) + jnp.cos(x), (8,))
    (fusing,) = [after for before, after in pairwise(states) if after["fusion_count"] > 0][:1]
    assert (fusing["pipeline"], fusing["name"]) == ("HLO_passes_after_layout_assignment", "fusion")


def test_operations_are_counted_by_kind() -> None:
    def f(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        looped = jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(y @ x), x)
        return looped, jnp.linalg.cholesky(x)

    first = passes(f, (16, 16))[0]
    assert (first["loop_count"], first["dot_count"], first["fusion_count"]) == (1, 1, 0)

    def g(x: jax.Array, kernel: jax.Array) -> jax.Array:
        return jax.lax.conv(x, kernel, (1, 1), "SAME")

    assert passes(g, (1, 2, 8, 8), (2, 2, 3, 3))[0]["convolution_count"] == 1


CATEGORIES = ["loops", "linear algebra", "random numbers", "pallas", "distributed"]


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_last_pass_leaves_the_kernels_of_the_row(category: str, worker: WorkerProcess) -> None:
    spec = Spec(categories=(category,)).record()
    described = {"action": "describe", "spec": spec, "targets": ["cpu"]}
    answers = [worker.ask({**described, "number": number}) for number in range(3)]
    rows = [answer["row"] for answer in answers if "row" in answer]
    assert rows
    for row in rows:
        for prefix in ("", "backward_") if row["backward_targets"] else ("",):
            text = row[f"{prefix}stablehlo"]
            states = worker.ask({"action": "passes", "stablehlo": text})["passes"]
            (target,) = row[f"{prefix}targets"]
            assert states[-1]["operation_count"] == target["kernel_count"]
            communicates = any(state["collective_count"] for state in states)
            assert communicates == (category == "distributed")


def test_barriers_that_xla_removes_last_are_gone() -> None:
    states = passes(lambda x: jnp.sin(jax.lax.optimization_barrier(jnp.cos(x))), (8,))
    assert states[-1]["operation_count"] == 2


@pytest.mark.parametrize("text", ["", "module {", "module {}"])
def test_what_cannot_be_compiled_has_a_cause(text: str) -> None:
    with pytest.raises(Rejected) as rejected:
        count(text)
    assert rejected.value.cause == "compile"
