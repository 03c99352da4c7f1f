"""Operations that are rarely used: templates have programs with them, which trace and run."""

from __future__ import annotations

import random
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from jaxsight_dataset.generating.programs import written
from jaxsight_dataset.generating.snippets import TEMPLATES
from jaxsight_dataset.program import RowProgram
from jaxsight_dataset.spec import Spec
from tests.jaxsight_dataset.programs import defined, primitives, traced, values

PRIMITIVES = {
    "gamma and zeta functions": {"igamma_grad_a", "polygamma", "zeta"},
    "rare decompositions": {"eig", "hessenberg", "schur", "tridiagonal"},
    "rounding": {"ceil", "nextafter", "reduce_precision"},
    "scatter": {"scatter-max", "scatter-min"},
    "selection": {"argmax", "argmin"},
    "windows": {"reduce_window"},
    "wrapped calls": {"composite", "dce_sink", "empty", "optimization_barrier", "pure_callback"},
}


def programs(name: str, count: int) -> Iterator[RowProgram]:
    """Programs of a template."""
    for number in range(count):
        yield written(TEMPLATES[name], Spec(), random.Random(f"{name}/{number}"), number)


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    """64-bit types, as datasets are made with."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_programs_have_the_operations_and_run(name: str) -> None:
    missing = set(PRIMITIVES[name])
    generator = np.random.default_rng(0)
    for program in programs(name, 80):
        if found := missing & set(primitives(traced(program).jaxpr)):
            missing -= found
            runs(program, generator)
        if not missing:
            return
    raise AssertionError(f"no program has {missing}")


def runs(program: RowProgram, generator: np.random.Generator) -> None:
    """Run a program, whose results have to be finite."""
    arguments = [values(item, generator) for item in program.arguments.values()]
    for leaf in jax.tree.leaves(jax.jit(defined(program))(*arguments)):
        assert np.all(np.isfinite(np.asarray(leaf, np.complex128))), program.text
