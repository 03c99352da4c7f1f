"""The museum's bugs occur where it says, and in training steps of some size; faults are planted."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import pytest

from jaxsight_repro.checks.base import parse
from jaxsight_repro.failures import FINISHED
from jaxsight_repro.running import run_file
from tests.corpora.jaxsight_repro import planted
from tests.corpora.jaxsight_repro.museum import LEAST, MUSEUM, Bug, equations, flat
from tests.searches import part

HERE = [bug for bug in MUSEUM if jaxlib.__version__ in bug.jaxlib and sys.platform == "linux"]
LIBRARIES = ("diffrax", "equinox", "flax", "optax")


def name(bug: Bug) -> str:
    return bug.name


def installed(file: Path) -> bool:
    used = [library for library in LIBRARIES if f"import {library}" in file.read_text()]
    return all(importlib.util.find_spec(library) for library in used)


@pytest.mark.parametrize("bug", MUSEUM, ids=name)
def test_the_program_by_hand_is_small(bug: Bug) -> None:
    assert equations(bug.by_hand) == bug.equations


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.parametrize("bug", part(MUSEUM), ids=name)
def test_the_training_step_is_large(bug: Bug) -> None:
    if not installed(bug.in_training):
        pytest.skip("a library is not installed")
    assert equations(bug.in_training) >= LEAST


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.parametrize("bug", part(HERE), ids=name)
def test_both_fail_here(bug: Bug) -> None:
    check = parse(bug.check)
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "0"}
    for file in (bug.by_hand, bug.in_training):
        if not installed(file):
            continue
        ran = run_file(sys.executable, file, environment=environment)
        assert ran.failure.kind != FINISHED
        if check.demonstration == parse("crash").demonstration:
            assert check.holds(ran.failure)


PLANTED = """
import jax, jax.numpy as jnp, numpy as np

def main(x, y):
    return jnp.sum(jnp.exp(x @ y) * 2.0)

def inputs():
    return np.ones((3, 4), "f4"), np.ones((4, 5), "f4")

if __name__ == "__main__":
{demonstration}
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", planted.FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_shows_where_it_is_planted(fault: planted.Fault, tmp_path: Path) -> None:
    check = parse(fault.check)
    lines = check.lines(jitted=True)
    file = tmp_path / "repro.py"
    file.write_text(PLANTED.format(demonstration="\n".join(f"    {line}" for line in lines)))
    what = {"fault": fault.kind, "primitive": "exp", "dtype": "float32", "rank": 2}
    if fault.after:
        what["after"] = "dot_general"

    def holds(**changed: object) -> bool:
        case = planted.Case(0, "", fault, {**what, **changed}, 4)
        seconds = check.seconds or 60.0
        return check.holds(
            run_file(sys.executable, file, timeout=seconds, environment=case.environment).failure
        )

    assert holds()
    assert not holds(rank=1)
    if fault.after:
        assert not holds(after="cos")


def test_places_for_faults() -> None:
    def f(x):
        y = jnp.sin(x)
        return jax.lax.fori_loop(0, 3, lambda _, z: jnp.sin(z) * y, y) > 0

    program = jax.make_jaxpr(f)(jnp.ones(3, jnp.float32))
    sites = {(site.primitive, site.rank): site for site in planted.sites(program)}
    assert sites["sin", 1].position == 0
    assert not sites["sin", 1].outside
    assert sites["gt", 1].outside
    assert not sites["gt", 1].floats
    assert ("scan", 0) not in sites


def test_faults_are_chosen_alike_each_time() -> None:
    program = jax.make_jaxpr(lambda x: jnp.cos(jnp.sin(x)) + x)(jnp.ones(3, jnp.float32))
    sites = planted.sites(program)
    for fault in planted.FAULTS:
        first, again = (list(planted.candidates(7, fault, sites)) for _ in range(2))
        assert first == again
        assert first
        assert all(("after" in what) == fault.after for what in first)


def test_equations_in_bodies_count_and_calls_do_not() -> None:
    @jax.jit
    def inner(x):
        return jnp.sin(x)

    def f(x):
        return jax.lax.cond(x > 0, inner, lambda x: x, x)

    names = [equation.primitive.name for equation in flat(jax.make_jaxpr(f)(1.0))]
    assert names == ["gt", "convert_element_type", "cond", "sin"]
    assert len(list(flat(jax.make_jaxpr(f)(1.0), bodies=False))) == 3
