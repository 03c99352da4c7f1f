"""Templates of operations that are rarely used: each program has the operation, traces and runs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from jaxsight_dataset.generating.programs import written
from jaxsight_dataset.generating.snippets import TEMPLATES
from jaxsight_dataset.program import Program
from jaxsight_dataset.spec import Spec
from tests.jaxsight_dataset.programs import defined, primitives, traced, values

PRIMITIVES = {
    "derivatives of gamma functions": {"igamma_grad_a"},
    "eigenvalues of general matrices": {"eig"},
    "reduced precision": {"reduce_precision"},
    "nearest elements": {"argmin"},
    "windows of other operations": {"reduce_window"},
    "running extremes": {"scatter-max", "scatter-min"},
    "checks": {"reduce_and"},
    "filled buffers": {"empty"},
    "composites": {"composite"},
    "barriers and sinks": {"dce_sink", "optimization_barrier"},
}


def programs(name: str, count: int) -> list[Program]:
    """Programs of a template."""
    return [
        written(TEMPLATES[name], Spec(), random.Random(f"{name}/{number}"), number)
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    """64-bit types, as datasets are made with."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_programs_have_the_operation_and_run(name: str) -> None:
    seen: set[str] = set()
    for program in programs(name, 12):
        primitive = PRIMITIVES[name] & set(primitives(traced(program).jaxpr))
        assert primitive, program.text
        seen |= primitive
    assert seen == PRIMITIVES[name]
    generator = np.random.default_rng(0)
    arguments = [values(item, generator) for item in program.arguments.values()]
    for leaf in jax.tree.leaves(jax.jit(defined(program))(*arguments)):
        assert np.all(np.isfinite(np.asarray(leaf, np.complex128))), program.text
