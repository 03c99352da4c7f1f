"""Programs of the generator: the same everywhere, readable, typed, and valid in JAX."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight.examples import choice
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec
from jaxsight_dataset.generating import generate, templates
from jaxsight_dataset.program import Argument, Array, RowProgram, leaves
from jaxsight_dataset.spec import CATEGORIES, DTYPES, Spec
from tests.examples.fixtures import function
from tests.jaxsight_dataset.programs import defined, structure, traced, values
from tests.searches import part

ROOT = Path(__file__).parents[2]
RUFF = ROOT / ".venvs" / "lint" / "bin" / "ruff"
RULES = "E,F,W,I,N,B,C4,PIE,SIM,UP,D2,D3,D401,D403,D415"


@cache
def sample() -> list[RowProgram]:
    """Return the programs that most tests look at: 2.5 s, which a collection need not pay."""
    return [generate(Spec(), number) for number in range(20 * len(CATEGORIES))]


@pytest.fixture
def wide_types() -> Iterator[None]:
    """64-bit types, as datasets are made with."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def records(programs: list[RowProgram]) -> str:
    return json.dumps([program.record() for program in programs])


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same_programs(hash_seed: str) -> None:
    script = (
        "import json; from jaxsight_dataset.generating import generate;"
        "from jaxsight_dataset.spec import Spec;"
        "print(json.dumps([generate(Spec(), k).record() for k in reversed(range(102))]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "server")}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == records(sample()[101::-1])


def test_another_seed_writes_other_programs() -> None:
    texts = {program.text for program in sample()}
    assert not texts & {generate(Spec(seed=1), number).text for number in range(len(sample()))}


def test_categories_have_equal_parts_and_there_are_many_templates() -> None:
    assert set(Counter(program.category for program in sample()).values()) == {20}
    assert set(templates().values()) == set(CATEGORIES)
    assert len(templates()) >= 60
    for program in sample():
        assert templates()[program.template] == program.category


def test_all_dtypes_and_ranks_occur() -> None:
    arrays = [
        leaf
        for program in [
            *sample(),
            *(generate(Spec(), number) for number in range(len(sample()), 1000)),
        ]
        for item in program.arguments.values()
        for leaf in leaves(item)
    ]
    assert {leaf.dtype for leaf in arrays} == {*DTYPES, "key"}
    assert {len(leaf.shape) for leaf in arrays} == {0, 1, 2, 3, 4, 5}
    assert all(np.prod(leaf.shape, dtype=int) <= Spec().max_elements for leaf in arrays)


def test_categories_and_dtypes_can_be_chosen() -> None:
    spec = Spec(categories=("math", "blocks"), dtypes=("float64", "int32"))
    programs = [generate(spec, number) for number in range(60)]
    assert {program.category for program in programs} == {"math", "blocks"}
    floats = Counter(
        leaf.dtype
        for program in programs
        for item in program.arguments.values()
        for leaf in leaves(item)
    )
    assert set(floats) <= {"float64", "int32", "bool"}


def spec_of(argument: Argument) -> InputSpec:
    match argument:
        case Array(dtype="key", shape=shape):
            return KeySpec("fry", shape)
        case Array(dtype=dtype, shape=shape):
            return ArraySpec(dtype, shape)
        case dict():
            names = tuple(repr(name) for name in argument)
            return TreeSpec("dict", tuple(map(spec_of, argument.values())), names)
    kind = "tuple" if isinstance(argument, tuple) else "list"
    return TreeSpec(kind, tuple(map(spec_of, argument)))


def test_example_inputs_are_those_of_the_arguments() -> None:
    for program in sample():
        examples = choice.of(function(program.text, program.function), sizes={})
        assert not examples.problems, program.text
        [only] = examples.sets
        written = {argument.name: argument.spec for argument in only.arguments}
        assert written == {name: spec_of(item) for name, item in program.arguments.items()}


def test_lines_are_short_and_the_docstring_starts_with_a_sentence() -> None:
    for program in sample():
        assert max(map(len, program.text.splitlines())) <= 88
        [*_, last] = ast.parse(program.text).body
        assert isinstance(last, ast.FunctionDef)
        assert last.name == program.function
        summary = (ast.get_docstring(last) or "").split("\n")[0]
        assert summary[0].isupper()
        assert summary.endswith(".")


@pytest.mark.skipif(not RUFF.exists(), reason="ruff is in the environment of `make lint`")
def test_programs_are_as_ruff_writes_them(tmp_path: Path) -> None:
    for program in sample():
        (tmp_path / f"program_{program.number}.py").write_text(program.text, encoding="utf-8")
    width = ["--isolated", "--no-cache", "--line-length", "88"]
    for command in (
        ["check", *width, "--select", RULES, "--ignore", "D203,D213"],
        ["format", *width, "--check"],
    ):
        done = subprocess.run(
            [RUFF, *command, tmp_path], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:]


def test_transformations_are_those_of_the_text() -> None:
    for program in sample():
        for name in program.transformations:
            assert name in program.text, program.text


@pytest.mark.slow
@pytest.mark.usefixtures("wide_types")
def test_structures_differ() -> None:
    programs = [program for program in sample() if program.category != "distributed"]
    programs = [program for program in programs if "ormqr" not in program.text]
    programs = [program for program in programs if "mulhi" not in program.text]
    structures = Counter(structure(traced(program).jaxpr) for program in programs)
    assert len(structures) >= 0.9 * len(programs)


def tolerance(program: RowProgram) -> float:
    """Of the coarsest dtype that the program mentions."""
    for name, bound in (("bfloat16", 0.06), ("float16", 0.03), ("bf16", 0.06), ("f16", 0.03)):
        if name in program.text:
            return bound
    return 2e-3


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.usefixtures("wide_types")
@pytest.mark.parametrize("number", part(range(51)))
def test_programs_run_eagerly_as_compiled(number: int) -> None:
    one_device = tuple(each for each in CATEGORIES if each != "distributed")
    program = generate(Spec(seed=2, categories=one_device), number)
    if any(name in program.text for name in ("lax.mulhi", "ormqr")) and not hasattr(lax, "mulhi"):
        pytest.skip("the function is new in JAX 0.10")
    generator = np.random.default_rng(number)
    arguments = [values(item, generator) for item in program.arguments.values()]
    call = defined(program)
    compiled = jax.tree.leaves(jax.jit(call)(*arguments))
    eager = jax.tree.leaves(call(*arguments))
    assert [leaf.dtype for leaf in compiled] == [leaf.dtype for leaf in eager]
    for one, other in zip(compiled, eager, strict=True):
        if not jnp.issubdtype(one.dtype, jnp.inexact):
            assert np.array_equal(one, other), program.text
            continue
        one, other = np.asarray(one, np.complex128), np.asarray(other, np.complex128)
        assert np.all(np.isfinite(other)), program.text
        bound = tolerance(program)
        scale = max(1e-2, float(np.abs(other).max(initial=0)))
        assert np.allclose(one, other, rtol=bound, atol=bound * scale), program.text
